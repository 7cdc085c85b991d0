/** A list of token ids. An `Int32Array` is not JSON-able: write `[...ids]`. */
export type TokenIds = readonly number[] | Int32Array;

/** The largest token id. Servers and this project store ids in 32-bit arrays. */
export const largestTokenId = 2 ** 31 - 1;

/** True if a value is a token id below `vocabularySize`, if that is given. */
export function isTokenId(value: unknown, vocabularySize = largestTokenId + 1): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < vocabularySize;
}

/** Returns the index of the first value that is not a token id (`isTokenId()`), or -1. */
export function findForeignId(values: ArrayLike<unknown>, vocabularySize?: number): number {
  // Plain loops, because they check the complete prompt each turn.
  const end = vocabularySize ?? largestTokenId + 1;
  if (values instanceof Int32Array) {
    for (let index = 0; index < values.length; index++) {
      if (values[index]! < 0 || values[index]! >= end) return index;
    }
    return -1;
  }
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (!Number.isInteger(value) || (value as number) < 0 || (value as number) >= end) return index;
  }
  return -1;
}

/** Describes the valid ids, for messages. */
export function idExpectation(vocabularySize = largestTokenId + 1): string {
  return `an id, 0 to ${vocabularySize - 1}`;
}
