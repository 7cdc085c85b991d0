import type { PlayedFrom } from "../job/attempt-result.ts";

/** What there is to say of attempts that others play. JSON-able. */
export type HandOutNews =
  /** A worker was lost, and another played the attempt: from its recording, or from its beginning. */
  | {
      readonly type: "attempt-played-again";
      readonly rolloutId: string;
      readonly attempt: number;
      readonly worker: string;
      /** How often it was taken up. */
      readonly deliveries: number;
      readonly from: PlayedFrom;
      /** Turns that were not sampled again. */
      readonly recordedTurns: number;
      /** Why a recording was of no use; absent where there was none, or it was. */
      readonly dropped?: string;
    }
  /** What a worker sent could not be used: the attempt is handed out again. */
  | {
      readonly type: "result-refused";
      readonly rolloutId: string;
      readonly attempt: number;
      readonly worker: string;
      readonly reason: string;
    }
  /** Nobody plays what is handed out. */
  | { readonly type: "no-worker"; readonly why: string }
  | { readonly type: "worker-there" };
