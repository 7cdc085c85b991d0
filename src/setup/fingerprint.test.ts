import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fingerprintFile, hashOf } from "./fingerprint.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-fingerprint-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

test("a file's fingerprint is the SHA-256 of its bytes, and absent where there is none", async () => {
  const file = path.join(scratch, "small");
  await writeFile(file, "some text");
  expect(await fingerprintFile(file)).toBe(hashOf("some text"));
  await writeFile(file, "");
  expect(await fingerprintFile(file)).toBe(hashOf(""));
  expect(await fingerprintFile(path.join(scratch, "none"))).toBeUndefined();
});

test("a large file's depends on its size, its beginning, its middle and its end", async () => {
  const size = 100 * 2 ** 20;
  const prints = new Set<string | undefined>();
  const places: readonly (number | undefined)[] = [undefined, 0, size / 2, size - 1];
  for (const place of places) {
    // The file has a hole for what is not written.
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
