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
  /** Where it is handed out: a machine and a process there. */
  host: name,
  pid: count,
  /** See `RunTerms`. */
  terms: z.record(name, name),
  termsHash: name,
  sampling: z.record(name, z.number()),
  /** Whether workers keep recordings to go on from. */
  isRecorded: z.boolean(),
  /** A file of the shared place by which workers know that theirs is the same; absent without one. */
  probe: z
    .string()
    .regex(/^\w[\w.-]*(?:\/\w[\w.-]*)*$/)
    .optional(),
  /** Milliseconds since the epoch. */
  startedAtMs: z.number(),
  /** When this was written. */
  atMs: z.number(),
  /** Handed out and not back; and back since this start. */
  waiting: count,
  landed: count,
});

/** What workers and watchers know of a run. JSON-able. */
export type RunEntry = z.infer<typeof runEntrySchema>;

/** How long a hand-out may give no sign of life before workers leave its run alone, milliseconds. */
export const runSilenceMs = 60_000;

/** Runs that nobody hands out any more are forgotten after so long, milliseconds. */
const forgottenMs = 7 * 24 * 60 * 60 * 1_000;

/** The runs that the store knows; `isAlive` tells whether they are being handed out. */
export async function readRuns(
  store: QueueStore,
): Promise<readonly (RunEntry & { readonly isAlive: boolean })[]> {
  const texts = await store.redis.hgetall(runsKey);
  const entries = Object.values(texts).flatMap((text) => parseRunEntry(text) ?? []);
  const alive =
    entries.length === 0 ? [] : await store.redis.mget(entries.map(({ run }) => runAliveKey(run)));
  return entries.map((entry, index) => ({ ...entry, isAlive: alive[index] !== null }));
}

/** Reads what is known of a run; nothing where it was written by another version, or is none. */
export function parseRunEntry(text: string): RunEntry | undefined {
  return runEntrySchema.safeParse(parseJsonText(text)).data;
}

/** Whether a run is so old that nobody will go on with it. */
export function isForgotten(entry: RunEntry & { readonly isAlive: boolean }, nowMs: number) {
  return !entry.isAlive && nowMs - entry.atMs > forgottenMs;
}

/**
 * Takes all that is known of a run out of the store, but who has joined it: those say themselves when they have
 * left, and until then one who goes on with the run waits for them, who may not have heard yet that it was closed.
 */
export async function forgetRun(store: QueueStore, run: string): Promise<void> {
  await store.redis.hdel(runsKey, run);
  await store.redis.del(runAliveKey(run), policyKey(run), cancelledKey(run));
}
