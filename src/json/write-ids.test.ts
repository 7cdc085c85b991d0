import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { idSlack, idTextLength, mostBytesPerId, writeIds } from "./write-ids.ts";

function written(ids: readonly unknown[], range?: Parameters<typeof writeIds>[3]): string {
  const bytes = Buffer.alloc(3 + ids.length * mostBytesPerId + idSlack);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = writeIds(view, 3, ids, range);
  return end === -1 ? "none" : bytes.toString("utf8", 3, end);
}

const edges = [
  0, 9, 10, 99, 100, 999, 1_000, 1_001, 9_999, 10_000, 99_999, 100_000, 100_001, 999_999,
];
const largeEdges = [
  1_000_000, 1_000_001, 9_999_999, 10_000_000, 99_999_999, 100_000_000, 999_999_999, 1_000_000_000,
  1_000_001_000, 1_999_999_999, 2_000_000_000, 2_147_483_647,
];

describe("writeIds()", () => {
  test("writes each number below ten thousand, and around the places where digits are added", () => {
    const ids = [...Array.from({ length: 10_000 }, (_, id) => id), ...edges, ...largeEdges];
    expect(written(ids)).toBe(ids.join(","));
    for (const id of [...edges, ...largeEdges]) expect(written([id])).toBe(`${id}`);
  });

  test("writes the text of JSON.stringify(), for any range", () => {
    const id = fc.oneof(fc.nat(), fc.nat(200_000), fc.constantFrom(...edges, ...largeEdges, -0));
    fc.assert(
      fc.property(fc.array(id, { minLength: 1 }), fc.nat(), (ids, drawn) => {
        const first = drawn % ids.length;
        const text = JSON.stringify(ids).slice(1, -1);
        expect(written(ids)).toBe(text);
        expect(idTextLength(ids)).toBe(text.length);
        expect(written(ids, { first })).toBe(JSON.stringify(ids.slice(first)).slice(1, -1));
        const last = first + 1;
        expect(written(ids, { first, last })).toBe(JSON.stringify(ids[first]));
      }),
    );
  });

  test.each([-1, 0.5, 2 ** 31, 1e300, NaN, Infinity, "1", null, undefined, 1n])(
    "does not write %s for an id",
    (foreign) => {
      expect(written([1, foreign])).toBe("none");
      expect(idTextLength([1, foreign])).toBe(-1);
      expect(written([1, foreign], { last: 1 })).toBe("1");
    },
  );
});

test("idTextLength() is 0 without ids", () => {
  expect(idTextLength([])).toBe(0);
});
