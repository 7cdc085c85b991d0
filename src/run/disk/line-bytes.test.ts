import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonParts } from "../../json/json-pieces.ts";
import { LineBytes } from "./line-bytes.ts";

function written(value: unknown, limit?: number): string {
  const blocks: Uint8Array[] = [];
  const bytes = new LineBytes((block) => void blocks.push(block));
  for (const part of jsonParts(value, limit)) {
    bytes.add(part);
    if (bytes.isBlockFull) bytes.flush();
  }
  bytes.flush();
  expect(bytes.isBlockFull).toBe(false);
  return Buffer.concat(blocks).toString("utf8");
}

describe("LineBytes", () => {
  test("writes the JSON of JSON.stringify() for any value", () => {
    const stretches = fc.array(
      fc.tuple(
        fc.oneof(
          fc.nat(200_000),
          fc.nat(),
          fc.integer(),
          fc.double(),
          fc.constantFrom("", "ü", "v1"),
        ),
        fc.integer({ min: 1, max: 60 }),
      ),
    );
    fc.assert(
      fc.property(
        fc.jsonValue(),
        stretches,
        fc.integer({ min: 1, max: 40 }),
        (any, drawn, limit) => {
          const list = drawn.flatMap(([item, count]) => new Array<unknown>(count).fill(item));
          const value = { any, list, text: "🦊ü" };
          expect(written(value, limit)).toBe(JSON.stringify(value));
        },
      ),
    );
  });

  test.each([
    ["ids", Array.from({ length: 50_000 }, (_, index) => (index * 7919) % 152_000)],
    ["large ids", Array.from({ length: 50_000 }, (_, index) => 2 ** 31 - 1 - index)],
    ["logprobs", Array.from({ length: 50_000 }, (_, index) => -index / 777)],
    ["ids that end in something else", [...Array.from({ length: 9_000 }, (_, id) => id), -1, 0.5]],
    ["a long run", new Array<number>(50_000).fill(0)],
    ["a run of long names", new Array<string>(30_000).fill("\u2603".repeat(16))],
    ["names with quotes", new Array<string>(300).fill('"\\\n')],
    ["a long text", "ab\u2603🦊".repeat(100_000)],
    ["a text of halves", "\ud83e".repeat(100_000)],
  ])("writes %s, however long", (_what, value) => {
    expect(written({ value }) === JSON.stringify({ value })).toBe(true);
  });
});
