import { z } from "zod";
import { parseJsonText } from "../../json/parse-json.ts";
import { workerAliveKey, workersKey } from "../store/keys.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { takeOutDead } from "../store/take-out-dead.ts";

const count = z.int().min(0);
const name = z.string().max(1_000);

const workerEntrySchema = z.strictObject({
  entry: z.literal(1),
  worker: name,
  host: name,
  pid: count,
  turnwright: name,
  environment: name,
  state: z.enum(["working", "draining"]),
  concurrency: count,
  /** The number of attempts that the worker plays, by run. */
  playing: z.record(name, count),
  played: count,
  turns: count,
  sampledTokens: count,
  /** The time for which the worker's turns waited, by party, in milliseconds. */
  spentMs: z.strictObject({ engine: z.number(), user: z.number(), environment: z.number() }),
  /** Share of the time in which the worker's event loop was busy, 0 to 1. */
  busy: z.number(),
  startedAtMs: z.number(),
  /** The time of this entry, in milliseconds since the epoch. */
  atMs: z.number(),
  /** The runs that the worker refuses, each with the facts (`RunTerms`) that differ. */
  refuses: z.record(name, z.string().max(10_000)),
});

/** A worker's report about itself. JSON-able. */
export type WorkerEntry = z.infer<typeof workerEntrySchema>;

/** Reads the entries of workers with a heartbeat. Removes the entries of others. */
export async function readWorkers(store: QueueStore): Promise<readonly WorkerEntry[]> {
  const texts = await store.redis.hgetall(workersKey);
  const ids = Object.keys(texts);
  if (ids.length === 0) return [];
  const alive = await store.redis.mget(ids.map((id) => workerAliveKey(id)));
  const dead = ids.filter((_, index) => alive[index] === null);
  await takeOutDead(store.redis, workersKey, dead);
  return ids.flatMap((id, index) =>
    alive[index] === null ? [] : (parseWorkerEntry(texts[id]!) ?? []),
  );
}

/**
 * Writes a worker's heartbeat, which is valid for `leaseMs`.
 * @param about - `isNext` is true if the worker has sent a heartbeat before.
 * @returns true if the heartbeat counts. A later heartbeat does not count if the previous one has expired or was lost,
 *   because other processes may have stopped waiting for this worker.
 */
export async function writeWorker(
  store: QueueStore,
  entry: WorkerEntry,
  { leaseMs, isNext }: { readonly leaseMs: number; readonly isNext: boolean },
): Promise<boolean> {
  const alive = workerAliveKey(entry.worker);
  const signs = store.redis.multi();
  if (isNext) signs.set(alive, "1", "PX", leaseMs, "XX");
  else signs.set(alive, "1", "PX", leaseMs);
  const answers = await signs.hset(workersKey, entry.worker, JSON.stringify(entry)).exec();
  return answers?.[0]?.[1] === "OK";
}

/** Removes a worker from the store. */
export async function forgetWorker(store: QueueStore, worker: string): Promise<void> {
  await store.redis.multi().del(workerAliveKey(worker)).hdel(workersKey, worker).exec();
}

function parseWorkerEntry(text: string): WorkerEntry | undefined {
  return workerEntrySchema.safeParse(parseJsonText(text)).data;
}
