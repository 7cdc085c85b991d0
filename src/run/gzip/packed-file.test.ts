import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { type OpenFile, readBlocks, readBytes } from "../disk/files.ts";
import { encodeIndex, readIndex } from "./gzip-index.ts";
import { packContent } from "./pack-content.ts";
import { PackedFile } from "./packed-file.ts";

/** A file in memory. It may return fewer bytes than a read asks for, as the system may. */
function memoryFile(bytes: Buffer, mostBytes = Infinity): OpenFile {
  return {
    read: async (into, position) =>
      bytes.subarray(position, position + Math.min(into.length, mostBytes)).copy(into),
    facts: async () => ({ size: bytes.length, identity: "memory", writtenAtMs: 7 }),
    close: async () => {},
    write: async () => 0,
    truncate: async () => {},
    sync: async () => {},
  };
}

async function pack(content: Buffer, blockSize: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of packContent(memoryFile(content), { blockSize })) parts.push(part);
  return Buffer.concat(parts);
}

async function unpack(packed: Buffer): Promise<Buffer> {
  const file = await PackedFile.open(memoryFile(packed), "a.gz");
  const blocks: Buffer[] = [];
  for await (const block of readBlocks(file)) blocks.push(Buffer.from(block));
  return Buffer.concat(blocks);
}

const contents = fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes));
const blockSizes = fc.integer({ min: 1, max: 200 });

describe("a packed file", () => {
  test("has the content that was packed, for this reader and for every gzip reader", async () => {
    await fc.assert(
      fc.asyncProperty(contents, blockSizes, async (content, blockSize) => {
        const packed = await pack(content, blockSize);
        expect(await unpack(packed)).toEqual(content);
        expect(gunzipSync(packed)).toEqual(content);
        const file = await PackedFile.open(memoryFile(packed), "a.gz");
        expect(await file.facts()).toEqual({
          size: content.length,
          identity: "memory",
          writtenAtMs: 7,
        });
      }),
    );
  });

  test("reads any range, in any order and at the same time", async () => {
    const ranges = fc.array(fc.tuple(fc.nat(550), fc.nat(550)), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(contents, blockSizes, fc.integer({ min: 1, max: 40 })),
        ranges,
        async ([content, blockSize, mostBytes], pairs) => {
          const packed = memoryFile(await pack(content, blockSize), mostBytes);
          const file = await PackedFile.open(packed, "a.gz");
          await Promise.all(
            pairs.map(async ([one, other]) => {
              const range = { start: Math.min(one, other), end: Math.max(one, other) };
              expect(await readBytes(file, range)).toEqual(
                content.subarray(range.start, range.end),
              );
            }),
          );
        },
      ),
    );
  });

  test("never gives other content if a byte of it is changed or its end is cut", async () => {
    const damage = fc.record({
      place: fc.nat(),
      bits: fc.integer({ min: 1, max: 255 }),
      isCut: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(contents, blockSizes, damage, async (content, blockSize, how) => {
        const packed = await pack(content, blockSize);
        const place = how.place % packed.length;
        const damaged = how.isCut ? packed.subarray(0, place) : Buffer.from(packed);
        if (!how.isCut) damaged[place]! ^= how.bits;
        const found = await unpack(damaged).catch((error: unknown) => error);
        // Some bits of a member's header, such as its time, say nothing about the content.
        if (found instanceof Buffer && !how.isCut) expect(found).toEqual(content);
        else {
          expect(found).toBeInstanceOf(UsageError);
          expect((found as Error).message).toMatch(/^Cannot read a\.gz: /);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("names the damaged bytes, and what they hold", async () => {
    const packed = await pack(Buffer.from("0123456789".repeat(3)), 10);
    const { starts } = (await readIndex(memoryFile(packed)))!;
    packed[starts[1]! + 12]! ^= 0xff;
    const file = await PackedFile.open(memoryFile(packed), "runs/a/samples.jsonl.gz");
    expect(await readBytes(file, { start: 0, end: 10 })).toEqual(Buffer.from("0123456789"));
    await expect(readBytes(file, { start: 0, end: 30 })).rejects.toThrow(
      `Cannot read runs/a/samples.jsonl.gz: bytes ${starts[1]} to ${starts[2]} are damaged, which hold bytes 10 to 20 ` +
        "of the unpacked file; copy the file again",
    );
    expect(await readBytes(file, { start: 20, end: 30 })).toEqual(Buffer.from("0123456789"));
  });

  test("refuses a file of another program", async () => {
    await expect(PackedFile.open(memoryFile(Buffer.from("{}\n")), "a.gz")).rejects.toThrow(
      /^Cannot read a\.gz: it does not end with the index that `turnwright pack` writes/,
    );
  });

  test("holds the sizes of more blocks than one member's extra field can", async () => {
    const memberSizes = Array.from({ length: 40_001 }, (_, block) => 30 + (block % 7));
    const end = encodeIndex({ size: 400_010, memberSizes, blockSize: 10 });
    const blocks = Buffer.alloc(memberSizes.reduce((sum, size) => sum + size, 0));
    const index = await readIndex(memoryFile(Buffer.concat([blocks, end])));
    expect(index).toMatchObject({ size: 400_010, blockSize: 10 });
    expect(index?.starts).toHaveLength(40_002);
    expect(index?.starts.at(-1)).toBe(blocks.length);
    expect(gunzipSync(end)).toEqual(Buffer.alloc(0));
  });
});
