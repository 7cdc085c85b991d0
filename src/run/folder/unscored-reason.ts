import type { Failure } from "../../errors.ts";
import type { Outcome, StopReason } from "../../trajectory/sample.ts";

/** Why an episode has no score: `failed/` and the party that failed, or `truncated/` and what ended it. */
export type UnscoredReason = `${Outcome}/${string}`;

/**
 * Why an episode has no score; `undefined` where it has one. A mean over scored episodes says little
 * beside this: whoever leaves out what ran out of time leaves out the long conversations.
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
