import type { PlayedFrom } from "../job/attempt-result.ts";

/** A notice about attempts that workers play. JSON-able. */
export type HandOutNews =
  /**
   * A worker was lost, and another worker played the attempt: from the lost worker's recording, or
   * from its first turn.
   */
  | {
      readonly type: "attempt-played-again";
      readonly rolloutId: string;
      readonly attempt: number;
      readonly worker: string;
      /** The number of times a worker took the job. */
      readonly deliveries: number;
      readonly from: PlayedFrom;
      /** The number of turns that came from a recording and were not sampled again. */
      readonly recordedTurns: number;
      /** The reason why the recording could not be used. Absent if it was used or did not exist. */
      readonly dropped?: string;
    }
  /** A worker's result could not be used, and the attempt is handed out again. */
  | {
      readonly type: "result-refused";
      readonly rolloutId: string;
      readonly attempt: number;
      readonly worker: string;
      readonly reason: string;
    }
  /** No worker plays the run. */
  | { readonly type: "no-worker"; readonly why: string }
  | { readonly type: "worker-there" };
