import { createHash } from "node:crypto";
import { z } from "zod";
import { UsageError } from "../../errors.ts";
import { recordingStart, type RecordingPoint } from "../../run/recording/recording-line.ts";
import { hashOfPayload, payloadSchema } from "./payload.ts";
import { shorten } from "../../secrets/shorten.ts";

/** Maximum length of a name in a job, in characters. */
const maxNameLength = 1_000;
const name = z.string().min(1).max(maxNameLength);
const count = z.int().min(0);

/** Sampling parameters of one job that replace the run's. */
const samplingSchema = z.object({
  temperature: z.number().optional(),
  topP: z.number().optional(),
  topK: z.number().optional(),
  minP: z.number().optional(),
  seed: count.optional(),
});

/** A point in the recording of an attempt (see `RecordingPoint`). */
export const recordingPointSchema = z.strictObject({ part: count, hash: z.string().max(100) });

/** A job: one play of one attempt, with all that a worker needs. JSON-able. */
export const attemptJobSchema = z.strictObject({
  job: z.literal(1),
  /** The run's id. */
  run: name,
  /** The id of the hand-out. Each start of the run has its own. */
  handOut: name,
  /** The hash of the run's `RunTerms` (see `hashTerms()`). */
  terms: name,
  /** The revision of the policy's state that a worker must have read before it plays. */
  policyRevision: count,
  /** The policy's version when the job was handed out. */
  policyVersion: z.int().optional(),
  rolloutId: name,
  groupId: name,
  groupIndex: count.optional(),
  sampleIndex: count,
  taskId: name,
  split: name,
  taskIndex: count,
  /** The task itself, if the environment would make another task from its split and index. */
  ownTask: payloadSchema.optional(),
  seed: z.int(),
  samplingSeed: z.int().optional(),
  forkedFrom: z.object({ rolloutId: name, turnIndex: count }).optional(),
  /** The hash of the prompt's ids at the fork point. */
  partingHash: name.optional(),
  attempt: z.int().min(1),
  start: z.int().min(1),
  /** The date that chat templates see (see `RunManifest.promptTime`). */
  promptTime: name.optional(),
  sampling: samplingSchema.optional(),
  /**
   * The deadline by the store's clock, in milliseconds since the epoch. No result is needed after
   * it.
   */
  deadlineAtMs: z.number().optional(),
  /** The recorded lines from which this play resumes. */
  past: payloadSchema.optional(),
  /**
   * The point in the run's recording after which the lines of this play are appended. Absent at the
   * start of the recording.
   */
  recordedAt: recordingPointSchema.optional(),
});

/** A job: one play of one attempt, with all that a worker needs. JSON-able. */
export type AttemptJob = z.infer<typeof attemptJobSchema>;

/**
 * Checks the names in a job against the limits of workers.
 *
 * @throws UsageError for the first name that is too long or empty.
 */
export function requireNames(
  job: Pick<AttemptJob, "rolloutId" | "groupId" | "taskId" | "split" | "forkedFrom">,
): void {
  const { rolloutId, groupId, taskId, split, forkedFrom } = job;
  const names = {
    taskId,
    split,
    groupId,
    rolloutId,
    "forkedFrom.rolloutId": forkedFrom?.rolloutId,
  };
  for (const [field, value] of Object.entries(names)) {
    if (value === undefined || (value.length > 0 && value.length <= maxNameLength)) continue;
    throw new UsageError(
      `Cannot hand out ${shorten(rolloutId, 100)}: its ${field} has ${value.length} characters, and names of 1 to ` +
        `${maxNameLength} travel to workers; give the environment's task, or the group, another id`,
    );
  }
}

/**
 * Returns the hash of the recording from which a job resumes, or `""`. Recorded lines are valid
 * only after the recording with this hash.
 */
export function baseOf({ past }: Pick<AttemptJob, "past">): string {
  return past === undefined ? "" : hashOfPayload(past);
}

/** Returns the point in the run's recording after which the lines of a job's play are appended. */
export function recordedAtOf({ recordedAt }: Pick<AttemptJob, "recordedAt">): RecordingPoint {
  return recordedAt ?? recordingStart;
}

/** Returns a job's id. The same play of an attempt has the same id each time it is handed out. */
export function jobIdOf({
  scope = "",
  rolloutId,
  attempt,
}: {
  /** A name that separates rollouts with the same id, such as those of two batches. */
  readonly scope?: string;
  readonly rolloutId: string;
  readonly attempt: number;
}): string {
  const hash = createHash("sha256").update(`${scope}\n${rolloutId}`).digest("hex");
  return `a${hash.slice(0, 24)}.${attempt}`;
}
