/** The largest id that anything takes: ids go into 32-bit arrays, here and in servers. */
export const largestTokenId = 2 ** 31 - 1;

/** Whether a value can be a token's id; `vocabularySize` is the number of ids, where it is known. */
export function isTokenId(value: unknown, vocabularySize = largestTokenId + 1): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < vocabularySize;
}

/** The index of the first value that is no id, as `isTokenId()` has it; -1 where all are. */
export function findForeignId(values: readonly unknown[], vocabularySize?: number): number {
  // A plain loop with little in it: it goes over a whole prompt each turn.
  const end = vocabularySize ?? largestTokenId + 1;
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (!Number.isInteger(value) || (value as number) < 0 || (value as number) >= end) return index;
  }
  return -1;
}

/** What was expected of a value that is no id, in the words of messages. */
export function idExpectation(vocabularySize = largestTokenId + 1): string {
  return `an id, 0 to ${vocabularySize - 1}`;
}
