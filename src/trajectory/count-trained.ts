import type { TurnSpan } from "./segment.ts";

/** Returns the number of trained tokens in a mask. */
export function countTrained(lossMask: readonly (0 | 1)[]): number {
  let count = 0;
  for (const bit of lossMask) count += bit;
  return count;
}

/** Returns the number of tokens that the turns of a row train. Their mask has as many ones. */
export function countTrainedIn(turns: readonly Pick<TurnSpan, "start" | "end">[]): number {
  return turns.reduce((sum, { start, end }) => sum + (end - start), 0);
}
