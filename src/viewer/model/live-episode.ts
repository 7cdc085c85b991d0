/** A running episode, according to its recording. JSON-able. */
export interface LiveEntry {
  readonly rolloutId: string;
  /** The number of the play, from 1. A failed attempt is played again. */
  readonly attempt: number;
  /** The number of lines in the episode's recording. If the number changes, the page reads the episode again. */
  readonly partCount: number;
}

/** A recorded answer of the environment or the user. JSON-able. */
export interface LiveAnswer {
  /** The turn that the answer follows; -1 before the first turn. */
  readonly turnIndex: number;
  readonly what: string;
  /** The answer's text. Absent if the recording has only a hash of it, because the text can be computed again. */
  readonly text?: string;
  readonly isError: boolean;
}

/** An episode that is being played. JSON-able. */
export interface LiveEpisode extends LiveEntry {
  readonly isLive: true;
  readonly turnCount: number;
  readonly answers: readonly LiveAnswer[];
}
