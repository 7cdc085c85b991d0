import type { ReadyAttempt, ReadyRow } from "../exporter.ts";

/** Returns the advantage of each token of a row: the attempt's or that of its turn, and 0 where the mask is 0. */
export function tokenAdvantages(
  { lossMask, turns }: ReadyRow,
  { advantage, turnAdvantages }: Pick<ReadyAttempt, "advantage" | "turnAdvantages">,
): readonly number[] {
  const values = lossMask.map((bit) => (bit === 1 ? advantage : 0));
  if (turnAdvantages === undefined) return values;
  for (const { turnIndex, start, end } of turns) {
    values.fill(turnAdvantages[turnIndex] ?? 0, start, Math.min(end, values.length));
  }
  return values;
}
