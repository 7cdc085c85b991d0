import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { diskFiles } from "../../run/disk/files.ts";
import { ArraysFile } from "./column-sink.ts";

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-sink-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

test("small blocks are written together, large ones as they are, in order", async () => {
  const sizes: number[] = [];
  const open = diskFiles.open.bind(diskFiles);
  const spy = vi.spyOn(diskFiles, "open").mockImplementation(async (file, mode) => {
    const opened = await open(file, mode);
    const write = opened.write.bind(opened);
    opened.write = async (bytes, at) => {
      sizes.push(bytes.length);
      return await write(bytes, at);
    };
    return opened;
  });
  const file = path.join(dir, "arrays");
  // Each block has one value. The blocks share their memory, as those of SkyRL's sets do.
  const lengths = [...Array.from({ length: 40_000 }, () => 8), 300_000, 8, 262_144, 1];
  const memory = Buffer.alloc(300_000);
  await using arrays = await ArraysFile.create(file);
  await arrays.place({
    type: "uint8",
    shape: [lengths.reduce((sum, length) => sum + length, 0)],
    async *bytes() {
      for (const [index, length] of lengths.entries()) {
        memory.fill(index % 251, 0, length);
        yield await Promise.resolve(memory.subarray(0, length));
      }
    },
  });
  await arrays.finish();
  spy.mockRestore();
  expect(sizes).toEqual([262_144, 57_856, 300_000, 8, 262_144, 1]);
  const wanted = lengths.map((length, index) => Buffer.alloc(length, index % 251));
  expect((await readFile(file)).equals(Buffer.concat(wanted))).toBe(true);
});
