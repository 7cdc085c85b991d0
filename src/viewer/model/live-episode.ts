/** A running episode, according to its recording. JSON-able. */
export interface LiveEntry {
  readonly rolloutId: string;
  /** Counts plays after failures, from 1. */
  readonly attempt: number;
  /** Lines of its recording: another number, more to see. */
  readonly partCount: number;
}

/** An answer to a running episode, from the environment or the user. JSON-able. */
export interface LiveAnswer {
  /** The turn that it answers; -1 before the first. */
  readonly turnIndex: number;
  readonly what: string;
  /** Absent if the recording has only its hash, because it can be computed again. */
  readonly text?: string;
  readonly isError: boolean;
}

/** An episode that is being played. JSON-able. */
export interface LiveEpisode extends LiveEntry {
  readonly isLive: true;
  readonly turnCount: number;
  readonly answers: readonly LiveAnswer[];
}
