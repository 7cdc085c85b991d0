import { z } from "zod";
import type { Episode } from "../../episode/episode.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import type { EpisodePack } from "../../run/packed/pack-episode.ts";
import { packedHeadSchema } from "../../run/packed/packed-head.ts";
import { unpackEpisode } from "../../run/packed/unpack-episode.ts";
import { payloadSchema } from "./payload.ts";
import { baseOf, recordedAtOf, recordingPointSchema, type AttemptJob } from "./attempt-job.ts";

const text = z.string().max(100_000);

/** A worker's answer: a reference to the result, or the reason why there is no result. JSON-able. */
export const answerSchema = z.discriminatedUnion("type", [
  z.strictObject({
    answer: z.literal(1),
    type: z.literal("played"),
    /** The id of the job's hand-out. */
    handOut: text,
    worker: z.string().max(200),
    result: payloadSchema,
  }),
  z.strictObject({
    answer: z.literal(1),
    type: z.literal("not-played"),
    /** The job's hand-out. `""` if the job cannot be read. */
    handOut: text,
    worker: z.string().max(200),
    /**
     * `usage`: the configuration cannot be used, and the run ends. `limit`: a limit is smaller than the shared prefix
     * of a fork needs. `playback`: the recording does not match. `bug`: a fault of this package. `cancelled`: the
     * result is not needed. `unfit`: this worker cannot play the job, but another worker may be able to.
     */
    why: z.enum(["usage", "limit", "playback", "bug", "cancelled", "unfit"]),
    message: text,
  }),
]);

/** A worker's answer. */
export type Answer = z.infer<typeof answerSchema>;

/**
 * The start of a play: `first` if it is the first play. After a lost worker, `recording` if it
 * resumed from the worker's recording, or `anew` if it started from the first turn.
 */
export type PlayedFrom = "first" | "recording" | "anew";

/** The first line of a result: the way in which the job was played, and the head of the episode. */
const headSchema = z.strictObject({
  result: z.literal(1),
  /** The hash of the recording from which the play resumed (see `baseOf()`). */
  base: text,
  /** The job's `recordedAt`: the recorded lines follow this point. */
  recordedAt: recordingPointSchema,
  /** The number of times a worker took the job. At least 1. */
  deliveries: z.int().min(1),
  from: z.enum(["first", "recording", "anew"]),
  /** The number of turns from a recording. */
  recordedTurns: z.int().min(0),
  /** The reason why the recording could not be used. Absent if it was used or did not exist. */
  dropped: text.optional(),
  episode: packedHeadSchema,
});

/** The first line of a result. JSON-able. */
export type ResultHead = z.infer<typeof headSchema>;

/** The result of a play. */
export interface AttemptResult extends Omit<ResultHead, "result" | "episode"> {
  /** The episode's lines are attached (see `packedOf()`). */
  readonly episode: Episode;
}

/** Writes a result: a line with its head, and the lines of the episode. */
export function writeResult(
  about: Omit<ResultHead, "result" | "episode">,
  { head, body }: EpisodePack,
): Buffer {
  const first: ResultHead = { result: 1, ...about, episode: head };
  return Buffer.concat([Buffer.from(`${JSON.stringify(first)}\n`), ...body]);
}

/**
 * Reads the first line of a worker's result and checks it against its job. Does not parse the lines that follow.
 * @returns the result, or a description of its fault.
 */
export function readResult(
  bytes: Buffer,
  job: AttemptJob,
): { readonly result: AttemptResult } | { readonly fault: string } {
  const end = bytes.indexOf("\n");
  const value = end < 0 ? undefined : parseJsonText(bytes.toString("utf8", 0, end));
  if (value === undefined) return { fault: "its first line is not JSON" };
  const read = headSchema.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { fault: `${issue?.path.join(".")}: ${issue?.message}` };
  }
  // The schema's copy has its members in another order than the text.
  const { episode: head, result: _format, ...about } = value as ResultHead;
  const stranger = strangerIn(head.story, job);
  if (stranger !== undefined) return { fault: stranger };
  const { part, hash } = recordedAtOf(job);
  // Another start of the run resumed the attempt in the meantime. Its turns would be recorded
  // twice.
  const isCurrent = about.recordedAt.part === part && about.recordedAt.hash === hash;
  if (about.base !== baseOf(job) || !isCurrent) {
    return { fault: "it continues from other inputs than those that are recorded now" };
  }
  const unpacked = unpackEpisode(head, bytes.subarray(end + 1));
  return "fault" in unpacked ? unpacked : { result: { ...about, episode: unpacked.episode } };
}

const shared = ["rolloutId", "groupId", "taskId", "split", "taskIndex"] as const;

function strangerIn(story: ResultHead["episode"]["story"], job: AttemptJob): string | undefined {
  const own = ["sampleIndex", "seed", "attempt"] as const;
  const wrong = [...shared, ...own].find((name) => story[name] !== job[name]);
  if (wrong === undefined) return undefined;
  return `its ${wrong} is ${String(story[wrong])}, the job's ${String(job[wrong])}`;
}
