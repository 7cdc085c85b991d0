import type { RecordedGrouping } from "../folder/episode-events.ts";

/** How many attempts there are at each task. */
export interface AttemptCounts {
  /** Scored attempts that make a group whole. */
  readonly size: number;
  /** Attempts that are begun, by which the run's seeds and places are counted. `size` or more. */
  readonly begun: number;
}

/**
 * How many attempts the last start had at each task; where it does not say so (it was an earlier
 * version's, or is lost), as many as the plan has.
 */
export function attemptCountsOf(
  { size: toldSize, begun: toldBegun }: RecordedGrouping,
  { sampleCount }: { readonly sampleCount: number },
): AttemptCounts {
  const size = toldSize ?? sampleCount;
  return { size, begun: Math.max(toldBegun ?? size, size) };
}
