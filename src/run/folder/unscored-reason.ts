import type { Failure } from "../../errors.ts";
import type { Outcome, StopReason } from "../../trajectory/sample.ts";

/**
 * The reason for which an episode has no score: `failed/` with the party that failed, or `truncated/` with the stop
 * reason.
 */
export type UnscoredReason = `${Outcome}/${string}`;

/**
 * Returns the reason for which an episode has no score; `undefined` if it has one. Read the mean of scored episodes
 * together with the counts of these reasons, because it leaves out truncated episodes, which are the long ones.
 */
export function unscoredReason(row: {
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  readonly failure?: Failure;
  readonly reward?: number;
}): UnscoredReason | undefined {
  if (row.reward !== undefined) return undefined;
  return `${row.outcome}/${row.failure?.party ?? row.stopReason}`;
}
