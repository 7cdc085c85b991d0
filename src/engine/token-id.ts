/** A list of token ids. An `Int32Array` is not JSON-able: write `toArray(ids)`. */
export type TokenIds = readonly number[] | Int32Array;

/** The largest token id. Servers and this project store ids in 32-bit arrays. */
export const largestTokenId = 2 ** 31 - 1;

/** True if a value is a token id. */
export function isTokenId(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= largestTokenId;
}

/** Returns the index of the first value that is not a token id (`isTokenId()`), or -1. */
export function findForeignId(values: ArrayLike<unknown>, vocabularySize?: number): number {
  const end = vocabularySize ?? largestTokenId + 1;
  if (values instanceof Int32Array && areBelow(values, end)) return -1;
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (!Number.isInteger(value) || (value as number) < 0 || (value as number) >= end) return index;
  }
  return -1;
}

/**
 * True if all numbers are from 0 to `end` (exclusive). Makes one pass without branches, because each turn checks its
 * complete prompt.
 */
function areBelow(values: Int32Array, end: number): boolean {
  let signs = 0;
  let largest = 0;
  for (let index = 0; index < values.length; index++) {
    const value = values[index]!;
    signs |= value;
    largest = Math.max(largest, value);
  }
  return signs >= 0 && largest < end;
}

/** Describes the valid ids, for messages. */
export function idExpectation(vocabularySize = largestTokenId + 1): string {
  return `an id, 0 to ${vocabularySize - 1}`;
}
