import { z } from "zod";
import { parseJsonText } from "../../json/parse-json.ts";
import { cancelledKey, policyKey, runAliveKey, runsKey } from "../store/keys.ts";
import type { QueueStore } from "../store/queue-store.ts";

const count = z.int().min(0);
const name = z.string().max(1_000);

const runEntrySchema = z.strictObject({
  entry: z.literal(1),
  /** The run's id. */
  run: z.string().regex(/^[\w-]{1,100}$/),
  environment: name,
  /** The machine and the process id of the hand-out. */
  host: name,
  pid: count,
  /** Facts that a worker must share with the run. */
  terms: z.record(name, name),
  termsHash: name,
  sampling: z.record(name, z.number()),
  /** True if workers record attempts, so that another worker can resume them. */
  isRecorded: z.boolean(),
  /**
   * The name of a file in the shared place, by which workers check that they have the same place.
   * Absent without a shared place.
   */
  probe: z
    .string()
    .regex(/^\w[\w.-]*(?:\/\w[\w.-]*)*$/)
    .optional(),
  /** The start of the hand-out, in milliseconds since the epoch. */
  startedAtMs: z.number(),
  /** The time of this entry, in milliseconds since the epoch. */
  atMs: z.number(),
  /** The number of jobs without an answer, and the number of attempts with a stored result since this start. */
  waiting: count,
  landed: count,
});

/** A run's entry in the store, which workers and `turnwright queue` read. JSON-able. */
export type RunEntry = z.infer<typeof runEntrySchema>;

/**
 * The time without a heartbeat after which workers stop taking a hand-out's jobs, in milliseconds.
 */
export const runSilenceMs = 60_000;

/** The age at which an abandoned run is removed from the store, in milliseconds. */
const forgottenMs = 7 * 24 * 60 * 60 * 1_000;

/** Reads the runs in the store. `isAlive` is true for a run that a process hands out. */
export async function readRuns(
  store: QueueStore,
): Promise<readonly (RunEntry & { readonly isAlive: boolean })[]> {
  const texts = await store.redis.hgetall(runsKey);
  const entries = Object.values(texts).flatMap((text) => parseRunEntry(text) ?? []);
  const alive =
    entries.length === 0 ? [] : await store.redis.mget(entries.map(({ run }) => runAliveKey(run)));
  return entries.map((entry, index) => ({ ...entry, isAlive: alive[index] !== null }));
}

/** Reads a run's entry. Returns `undefined` for an invalid entry, or one from another version. */
export function parseRunEntry(text: string): RunEntry | undefined {
  return runEntrySchema.safeParse(parseJsonText(text)).data;
}

/** True if a run is too old to be resumed. */
export function isForgotten(entry: RunEntry & { readonly isAlive: boolean }, nowMs: number) {
  return !entry.isAlive && nowMs - entry.atMs > forgottenMs;
}

/**
 * Removes a run from the store, except for its list of joined workers. Workers remove themselves
 * from it when they leave. Until then, a new hand-out of the run waits for them, because they may
 * not have read that the gate was closed.
 */
export async function forgetRun(store: QueueStore, run: string): Promise<void> {
  await store.redis.hdel(runsKey, run);
  await store.redis.del(runAliveKey(run), policyKey(run), cancelledKey(run));
}
