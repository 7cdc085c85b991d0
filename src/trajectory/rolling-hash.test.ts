import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { RollingHash, hashIds } from "./rolling-hash.ts";

/** SHA-256 of the ids as little-endian 32-bit integers, its first 16 digits. */
function expectedHash(ids: readonly number[]): string {
  const bytes = Buffer.alloc(ids.length * 4);
  for (const [index, id] of ids.entries()) bytes.writeInt32LE(id, index * 4);
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

const lists = [
  [],
  [0],
  [1, 2, 3],
  [151_645, 198, 2 ** 31 - 1],
  Array.from({ length: 999 }, (_, n) => n),
];

test.each(lists.map((ids) => ({ ids })))("the hash of $ids is that of its bytes", ({ ids }) => {
  expect(hashIds(ids)).toBe(expectedHash(ids));
});

test("ids added in parts have the hash of all of them", () => {
  const rolling = new RollingHash();
  const all: number[] = [];
  for (const ids of lists) {
    expect(rolling.digest(ids)).toBe(expectedHash([...all, ...ids]));
    rolling.append(ids);
    all.push(...ids);
    expect(rolling.digest()).toBe(expectedHash(all));
  }
});

test.each([-1, 0.5, NaN, 2 ** 31, "1"])("%j is no id, and is not hashed", (value) => {
  expect(() => hashIds([1, value as number])).toThrow(/cannot hash .* at 1/);
});
