import { execFileSync } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { removeFolder } from "./remove-folder.ts";

/** A user without root's rights. */
const plainUser = 65_534;

describe.skipIf(process.platform === "win32")("removeFolder()", () => {
  let dir = "";
  beforeEach(async () => {
    // The tests' own folder is closed to other users.
    dir = await mkdtemp("/tmp/turnwright-remove-");
    if (process.getuid?.() !== 0) return;
    await chown(dir, plainUser, plainUser);
    process.seteuid?.(plainUser);
  });
  afterEach(async () => {
    if (process.getuid?.() === 0) process.seteuid?.(0);
    await removeFolder(dir);
  });

  test("removes folders that may be neither written nor read, and does not follow links", async () => {
    const [own, other] = [path.join(dir, "own"), path.join(dir, "other")];
    await mkdir(path.join(own, "go", "module"), { recursive: true });
    await mkdir(other);
    await writeFile(path.join(own, "go", "module", "file"), "");
    await symlink(other, path.join(own, "go", "link"));
    await chmod(other, 0o500);
    await chmod(path.join(own, "go", "module"), 0o500);
    await chmod(path.join(own, "go"), 0o000);
    await removeFolder(own);
    await expect(stat(own)).rejects.toThrow("ENOENT");
    expect((await stat(other)).mode & 0o777).toBe(0o500);
  });

  test("removes folders whose path is too long for the system", async () => {
    const own = path.join(dir, "own");
    const name = "n".repeat(250);
    const make = `const fs = require("fs"); process.chdir(process.argv[1]);
      for (let depth = 0; depth < 20; depth++) {
        fs.mkdirSync(process.argv[2]); fs.writeFileSync("file", ""); process.chdir(process.argv[2]);
      }
      fs.chmodSync(".", 0o000);`;
    await mkdir(own);
    execFileSync(process.execPath, ["-e", make, own, name]);
    await removeFolder(own);
    await expect(stat(own)).rejects.toThrow("ENOENT");
  });

  test("does nothing without the folder", async () => {
    await removeFolder(path.join(dir, "none"));
  });
});
