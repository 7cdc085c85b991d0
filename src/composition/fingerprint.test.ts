import { mkdir, mkdtemp, open, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fingerprintFile, fingerprintFiles, hashOf, listFiles } from "./fingerprint.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-fingerprint-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

test("a file's fingerprint is the SHA-256 of its bytes, and absent without a file", async () => {
  const file = path.join(scratch, "small");
  await writeFile(file, "some text");
  expect(await fingerprintFile(file)).toBe(hashOf("some text"));
  await writeFile(file, "");
  expect(await fingerprintFile(file)).toBe(hashOf(""));
  expect(await fingerprintFile(path.join(scratch, "none"))).toBeUndefined();
});

test("a fingerprint of several files covers the existing ones, and is absent without any", async () => {
  const dir = path.join(scratch, "files");
  await mkdir(dir);
  await writeFile(path.join(dir, "a"), "some text");
  const print = await fingerprintFiles(dir, ["b", "a"]);
  expect(print).toBe(hashOf(`a ${hashOf("some text")}`));
  await expect(fingerprintFiles(dir, ["b", "c"])).rejects.toThrow(
    `Cannot tell what is in ${dir}: there is no b, c, expected one at least`,
  );
});

test("links to files are listed as files, others are not", async () => {
  const dir = path.join(scratch, "links");
  await mkdir(path.join(dir, "below"), { recursive: true });
  await writeFile(path.join(dir, "below", "file"), "");
  await symlink("below/file", path.join(dir, "link"));
  await symlink("below", path.join(dir, "folder"));
  await symlink("nowhere", path.join(dir, "broken"));
  expect((await listFiles(dir, "")).toSorted()).toEqual(["below/file", "link"]);
});

test("a large file's depends on its size, its beginning, its middle and its end", async () => {
  const size = 100 * 2 ** 20;
  const prints = new Set<string | undefined>();
  const places: readonly (number | undefined)[] = [undefined, 0, size / 2, size - 1];
  for (const place of places) {
    // The unwritten part of the file is a hole.
    const file = path.join(scratch, `large-${place}`);
    const handle = await open(file, "w");
    await handle.truncate(size);
    if (place !== undefined) await handle.write("x", place);
    await handle.close();
    prints.add(await fingerprintFile(file));
  }
  const longer = path.join(scratch, "longer");
  await writeFile(longer, "");
  const handle = await open(longer, "r+");
  await handle.truncate(size + 1);
  await handle.close();
  prints.add(await fingerprintFile(longer));
  expect(prints.size).toBe(5);
});
