/** An episode that is being played, as far as its recording tells. JSON-able. */
export interface LiveEntry {
  readonly rolloutId: string;
  /** Counts plays after failures, from 1. */
  readonly attempt: number;
  /** Lines of its recording: another number, more to see. */
  readonly partCount: number;
}

/** What came back to an episode that is being played, besides what was sampled. JSON-able. */
export interface LiveAnswer {
  /** The turn that it answers; -1 before the first. */
  readonly turnIndex: number;
  readonly what: string;
  /** Absent where the recording holds its hash alone: it can be worked out again. */
  readonly text?: string;
  readonly isError: boolean;
}

/** An episode that is being played. JSON-able. */
export interface LiveEpisode extends LiveEntry {
  readonly isLive: true;
  readonly turnCount: number;
  readonly answers: readonly LiveAnswer[];
}
