import type { ColumnParts } from "../../columns/column-part.ts";
import { SmallerLimit } from "../../episode/play-episode.ts";
import { ownBug, UsageError } from "../../errors.ts";
import type { Clock } from "../../async/clock.ts";
import { PlaybackStop } from "../../outside.ts";
import { packedOf } from "../../run/packed/packed-episode.ts";
import { packedBytes } from "../../run/packed/packed-bytes.ts";
import type { AttemptJob } from "../job/attempt-job.ts";
import { readResult, type Answer, type AttemptResult } from "../job/attempt-result.ts";
import { PayloadError, takePayloadBytes } from "../job/payload.ts";
import type { SharedPlace } from "../place/shared-place.ts";
import type { HandedJob } from "./handed-job.ts";
import type { TakenColumns } from "./taken-columns.ts";

/** The decision about a worker's answer. */
type Verdict =
  | {
      readonly type: "played";
      readonly result: AttemptResult;
      readonly worker: string;
      /** The answer's file in the shared place. `undefined` if the answer is in the message. */
      readonly file: string | undefined;
      /**
       * The parts of side columns that the answer names. They are already in the run's folder. `undefined` if it names
       * none.
       */
      readonly columns: ColumnParts | undefined;
    }
  /**
   * The job must be handed out again. `reason` describes the fault of the answer, or is `undefined` if the answer has
   * no fault.
   */
  | { readonly type: "again"; readonly reason: string | undefined }
  | { readonly type: "thrown"; readonly error: unknown };

/** Checks an answer against its job, and writes the side columns that it names into the run's folder. */
export async function judgeAnswer(
  handed: HandedJob,
  answer: Answer,
  {
    place,
    columns: taken,
    clock,
  }: {
    readonly place: SharedPlace | undefined;
    readonly columns: TakenColumns;
    readonly clock: Clock;
  },
): Promise<Verdict> {
  if (answer.type === "not-played") return notPlayed(answer, handed.job);
  let bytes: Buffer;
  try {
    bytes = await takePayloadBytes(answer.result, place, {
      clock,
      allocate: (size) => packedBytes.acquire(size),
    });
  } catch (error) {
    if (!(error instanceof PayloadError)) throw error;
    return { type: "again", reason: error.message };
  }
  const read = readResult(bytes, handed.job);
  if ("fault" in read) return { type: "again", reason: read.fault };
  const { result } = read;
  // The answer comes from an attempt that an earlier start interrupted.
  if (result.episode.outcome === "aborted" && !handed.isInterrupted) {
    return { type: "again", reason: undefined };
  }
  const columns = packedOf(result.episode)?.columns;
  if (columns !== undefined) {
    const { columnStore } = handed;
    const fault =
      columnStore === undefined
        ? "it has side columns, and the run has none"
        : await taken.take(columns, columnStore);
    if (fault !== undefined) return { type: "again", reason: fault };
  }
  const file = answer.result.by === "shared" ? answer.result.name : undefined;
  return { type: "played", result, worker: answer.worker, file, columns };
}

function notPlayed(
  { handOut, why, message, worker }: Extract<Answer, { type: "not-played" }>,
  job: AttemptJob,
): Verdict {
  // An earlier start may have failed for a reason that no longer exists.
  const isStale = handOut !== job.handOut && why !== "unfit";
  if (isStale) return { type: "again", reason: undefined };
  switch (why) {
    case "usage":
      return { type: "thrown", error: new UsageError(`${message} (worker ${worker})`) };
    case "limit":
      return { type: "thrown", error: new SmallerLimit(`${message} (worker ${worker})`) };
    case "bug":
      return { type: "thrown", error: ownBug(`${message} (worker ${worker})`) };
    case "playback":
      return { type: "thrown", error: new PlaybackStop(message) };
    case "unfit":
      return { type: "again", reason: message };
    case "cancelled":
      return { type: "again", reason: undefined };
  }
}
