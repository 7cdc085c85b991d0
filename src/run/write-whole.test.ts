import { lstat, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { crashingFiles, faultyFiles, type FileCall } from "./faulty-files.fixture.ts";
import { writeWhole, writeWholeJson } from "./write-whole.ts";

let dir = "";
let file = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-whole-"));
  file = path.join(dir, "a.json");
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

test("writeWhole() syncs the contents before the rename, and the folder after it", async () => {
  const calls: string[] = [];
  const files = faultyFiles(({ operation, path: name }: FileCall) => {
    calls.push(`${operation} ${path.basename(name)}`);
    return undefined;
  });
  await writeWhole(file, "new", { files });
  expect(calls.filter((call) => /write|sync|rename/.test(call))).toEqual([
    ...[
      "write a.json.next",
      "sync a.json.next",
      "rename a.json",
      `syncFolder ${path.basename(dir)}`,
    ],
  ]);
});

test.each(["open", "write", "sync", "close", "rename"] as const)(
  "writeWhole() leaves the old contents where %s fails, and nothing beside them",
  async (operation) => {
    await writeFile(file, "old");
    const files = faultyFiles((call) =>
      call.operation === operation ? { type: "fail", code: "ENOSPC", written: 1 } : undefined,
    );
    await expect(writeWhole(file, "new", { files })).rejects.toThrow(
      `Cannot write ${file}: ENOSPC: no space left on device, write; make room on the disk`,
    );
    expect(await readFile(file, "utf8")).toBe("old");
    expect(await readdir(dir)).toEqual(["a.json"]);
  },
);

test("writeWhole() leaves the old contents or the new ones wherever the process dies", async () => {
  for (let at = 0; ; at++) {
    await writeFile(file, "old");
    const { files, count } = crashingFiles(at);
    await writeWhole(file, "new contents", { files }).catch(() => {});
    expect(["old", "new contents"]).toContain(await readFile(file, "utf8"));
    if (count() <= at) break;
  }
  expect(await readFile(file, "utf8")).toBe("new contents");
});

test("writeWholeJson() follows a link, and goes on after short writes", async () => {
  await writeFile(path.join(dir, "real.json"), "old");
  await symlink("real.json", file);
  const files = faultyFiles(({ operation }) =>
    operation === "write" ? { type: "short", written: 2 } : undefined,
  );
  await writeWholeJson(file, { a: [1] }, { files });
  expect((await lstat(file)).isSymbolicLink()).toBe(true);
  expect(await readFile(path.join(dir, "real.json"), "utf8")).toBe('{\n  "a": [\n    1\n  ]\n}\n');
});
