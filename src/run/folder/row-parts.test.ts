import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { spellPart } from "../../json/json-pieces.ts";
import { hashRow } from "../../trajectory/hash-row.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { encodeLine, encodeRow } from "../disk/encode-line.ts";
import { rowParts } from "./row-parts.ts";

/** A row with arbitrary values in its lists. */
function rowOf(lists: Readonly<Record<string, readonly unknown[]>>): Sample {
  const about = { format: 1, rolloutId: 't"#0', reward: undefined, promptLength: 7 } as const;
  return { ...about, ...lists, turns: [{ turnIndex: 0 }], metadata: {} } as unknown as Sample;
}

const names = ["tokenIds", "lossMask", "logprobs", "policyVersions"] as const;

/** Slices of valid and invalid values of such a list. */
const list = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom(0, 1, -0, "", "v1", "ü", NaN, null, undefined, true, [1], { a: "b" }),
        fc.nat(200_000),
        fc.double(),
      ),
      fc.integer({ min: 1, max: 40 }),
    ),
  )
  .map((stretches) => stretches.flatMap(([item, count]) => new Array<unknown>(count).fill(item)));

describe("rowParts()", () => {
  test("writes the JSON of JSON.stringify() for any list and any part length", () => {
    const rows = fc.record(Object.fromEntries(names.map((name) => [name, list]))).map(rowOf);
    fc.assert(
      fc.property(rows, fc.integer({ min: 1, max: 50 }), (row, limit) => {
        const parts = [...rowParts(row, limit)];
        expect(parts.map(spellPart).join("")).toBe(JSON.stringify(row));
      }),
    );
  });

  test.each([0, 15, 16, 17])("spells %i zeros between fractions", (count) => {
    const zeros = new Array<number>(count).fill(0);
    const logprobs = [-0.5, ...zeros, -0.25, ...zeros];
    const row = rowOf({ logprobs });
    expect([...rowParts(row)].map(spellPart).join("")).toBe(JSON.stringify(row));
  });

  test("keeps values that are not lists", () => {
    const row = { ...rowOf({}), tokenIds: "none", logprobs: { length: 3 } } as unknown as Sample;
    expect([...rowParts(row)].map(spellPart).join("")).toBe(JSON.stringify(row));
  });
});

test("encodeRow() gives the line that encodeLine() gives, however long the row", async () => {
  for (const length of [0, 3, 1_000, 100_000]) {
    const each = <Value>(of: (index: number) => Value): readonly Value[] =>
      Array.from({ length }, (_, index) => of(index));
    const isSampled = (index: number): boolean => index % 500 > 400;
    const row = rowOf({
      tokenIds: each((index) => (index * 7919) % 150_000),
      lossMask: each((index) => (isSampled(index) ? 1 : 0)),
      logprobs: each((index) => (isSampled(index) ? -index / 77_777 : 0)),
      policyVersions: each((index) => (isSampled(index) ? "v1" : "")),
    });
    const [fast, slow] = [await encodeRow(row), await encodeLine(row)];
    expect(Buffer.concat(fast.blocks).equals(Buffer.concat(slow.blocks))).toBe(true);
    expect(fast.hash).toBe(slow.hash);
    expect(fast.hash).toBe(hashRow(row));
  }
});
