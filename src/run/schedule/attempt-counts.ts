import type { RecordedGrouping } from "../folder/episode-events.ts";

/** The number of attempts at each task. */
export interface AttemptCounts {
  /** The number of scored attempts that complete a group. */
  readonly size: number;
  /**
   * The number of attempts that are started, `size` or more. Seeds and rollout indexes are computed from this number.
   */
  readonly started: number;
}

/** Returns the attempt counts of a run's options. Without over-sampling, a group starts as many attempts as it needs. */
export function groupingCounts({
  size,
  started = size,
}: {
  readonly size: number;
  readonly started?: number;
}): AttemptCounts {
  return { size, started };
}

/** Returns the attempt counts that the last start recorded, or those of the plan if no start of the run recorded any. */
export function attemptCountsOf(
  { size: recordedSize, begun }: RecordedGrouping,
  { sampleCount }: { readonly sampleCount: number },
): AttemptCounts {
  const size = recordedSize ?? sampleCount;
  return { size, started: Math.max(begun ?? size, size) };
}
