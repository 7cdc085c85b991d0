/** The largest id that ledgers and files take: ids are hashed as signed 32-bit integers. */
export const largestTokenId = 2 ** 31 - 1;

/** Whether a value can be a token's id: a whole number from 0 to `largestTokenId`. */
export function isTokenId(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= largestTokenId;
}
