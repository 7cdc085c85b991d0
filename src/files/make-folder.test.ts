import { mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeFolder } from "./make-folder.ts";

async function newFolder(): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), "make-folder-"));
  onTestFinished(async () => await rm(dir, { recursive: true }));
  return dir;
}

test("makeFolder() makes a folder and its parents, and keeps an existing one", async () => {
  const dir = path.join(await newFolder(), "a/b/c");
  await Promise.all([makeFolder(dir), makeFolder(dir)]);
  await makeFolder(dir);
  expect((await stat(dir)).isDirectory()).toBe(true);
});

test("makeFolder() returns the folders that it made", async () => {
  const dir = await newFolder();
  const names = ["a", "a/b", "a/b/c"].map((name) => path.join(dir, name));
  expect(await makeFolder(names[2]!)).toEqual(names);
  expect(await makeFolder(names[2]!)).toEqual([]);
  expect(await makeFolder(path.join(dir, "a/d"))).toEqual([path.join(dir, "a/d")]);
});

test("makeFolder() makes folders that others make at the same time", async () => {
  for (let round = 0; round < 50; round++) {
    const dir = await newFolder();
    const below = Array.from({ length: 16 }, (_, index) => path.join(dir, `a/b/${index % 4}`));
    await Promise.all(below.map(makeFolder));
    for (const each of below) expect((await stat(each)).isDirectory()).toBe(true);
  }
});

test("makeFolder() names the obstacle", async () => {
  const dir = await newFolder();
  await writeFile(path.join(dir, "file"), "");
  await symlink("nowhere", path.join(dir, "link"));
  await expect(makeFolder(path.join(dir, "file"))).rejects.toMatchObject({ code: "EEXIST" });
  await expect(makeFolder(path.join(dir, "file/below"))).rejects.toMatchObject({ code: "ENOTDIR" });
  await expect(makeFolder(path.join(dir, "link"))).rejects.toMatchObject({ code: "EEXIST" });
  await expect(makeFolder(path.join(dir, "link/below"))).rejects.toMatchObject({ code: "EEXIST" });
});

test.runIf(process.platform === "linux")(
  "makeFolder() ends if the folder cannot be made",
  async () => {
    await expect(makeFolder("/proc/turnwright/run")).rejects.toMatchObject({ code: "ENOENT" });
  },
);
