import { z } from "zod";
import type { Episode } from "../../episode/episode.ts";
import { segmentFault } from "../../trajectory/segment-fault.ts";
import { payloadSchema } from "./payload.ts";
import { baseOf, type AttemptJob } from "./attempt-job.ts";

const text = z.string().max(100_000);

/** A worker's answer: the place of its result, or the reason why there is none. JSON-able. */
export const answerSchema = z.discriminatedUnion("type", [
  z.strictObject({
    answer: z.literal(1),
    type: z.literal("played"),
    /** The job's. */
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
     * `usage`: the configuration cannot be used, and the run ends. `limit`: a limit is smaller than
     * the shared prefix of a fork needs. `playback`: the recording does not match. `bug`: a fault
     * of this package. `cancelled`: the result is not needed. `unfit`: this worker cannot play the
     * job, another one may.
     */
    why: z.enum(["usage", "limit", "playback", "bug", "cancelled", "unfit"]),
    message: text,
  }),
]);

/** A worker's answer. */
export type Answer = z.infer<typeof answerSchema>;

/**
 * The beginning of a play: `first`, or after a lost worker `recording` (resumed) or `anew` (from
 * the start).
 */
export type PlayedFrom = "first" | "recording" | "anew";

const resultSchema = z.strictObject({
  result: z.literal(1),
  /** The hash of the recording from which it resumed (see `baseOf()`). */
  base: text,
  /** The number of times the job was taken. At least 1. */
  deliveries: z.int().min(1),
  from: z.enum(["first", "recording", "anew"]),
  /** Turns that were taken from a recording. */
  recordedTurns: z.int().min(0),
  /** The reason why a recording could not be used. Absent if it was used or did not exist. */
  dropped: text.optional(),
  episode: z.looseObject({
    format: z.literal(1),
    rolloutId: z.string(),
    groupId: z.string(),
    taskId: z.string(),
    split: z.string(),
    taskIndex: z.int().min(0),
    sampleIndex: z.int().min(0),
    seed: z.int(),
    attempt: z.int().min(1),
    outcome: z.enum(["completed", "truncated", "failed", "aborted"]),
    stopReason: z.string(),
    reward: z.number().optional(),
    durationMs: z.number(),
    counts: z.looseObject({ turnCount: z.int().min(0) }),
    userUsage: z.looseObject({ callCount: z.int().min(0) }),
    messages: z.array(z.unknown()),
    turns: z.array(z.looseObject({ engineMs: z.number(), environmentMs: z.number() })),
    segments: z.array(z.unknown()),
  }),
  /** Lines of the recording, in order. */
  lines: z.array(z.string()).max(1_000_000),
  troubles: z.array(z.strictObject({ code: text, message: text, stack: text })).max(10_000),
});

/** The result of a play. JSON-able. */
export interface AttemptResult extends Omit<z.infer<typeof resultSchema>, "episode"> {
  readonly episode: Episode;
}

/**
 * Reads a worker's result and checks it against its job.
 * @returns the result, or a description of its fault.
 */
export function readResult(
  text: string,
  job: AttemptJob,
): { readonly result: AttemptResult } | { readonly fault: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { fault: `it is no JSON: ${error.message}` };
  }
  const read = resultSchema.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { fault: `${issue?.path.join(".")}: ${issue?.message}` };
  }
  const { episode } = read.data;
  const fault = segmentFault(episode.segments) ?? strangerIn(episode, job);
  if (fault !== undefined) return { fault };
  // A start that played it otherwise, or by itself, came in between: what was sampled since would be twice.
  if (read.data.base !== baseOf(job)) {
    return { fault: "it goes on from other inputs than those that are recorded by now" };
  }
  // The looser schema would copy it; what came is what is kept.
  return { result: value as AttemptResult };
}

const shared = ["rolloutId", "groupId", "taskId", "split", "taskIndex"] as const;

function strangerIn(
  episode: z.infer<typeof resultSchema>["episode"],
  job: AttemptJob,
): string | undefined {
  const own = ["sampleIndex", "seed", "attempt"] as const;
  const wrong = [...shared, ...own].find((name) => episode[name] !== job[name]);
  if (wrong === undefined) return undefined;
  return `its ${wrong} is ${String(episode[wrong])}, the job's ${String(job[wrong])}`;
}
