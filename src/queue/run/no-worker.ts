import type { QueueStore } from "../store/queue-store.ts";
import { readWorkers, type WorkerEntry } from "./worker-entry.ts";

/** Describes why no worker plays a run. Returns `undefined` if a worker plays it, or may do so at any time. */
export async function describeNoWorker(
  store: QueueStore,
  run: string,
): Promise<string | undefined> {
  return describeIdle(await readWorkers(store), run);
}

/** The parts of a worker's report that tell why it does not play a run. */
export type IdleWorker = Pick<
  WorkerEntry,
  "worker" | "state" | "concurrency" | "playing" | "refuses"
>;

/** Describes why none of the workers plays a run. Returns `undefined` if a worker plays the run or has room for it. */
export function describeIdle(workers: readonly IdleWorker[], run: string): string | undefined {
  const [first] = workers;
  if (first === undefined) {
    return "no worker is there: start one with `turnwright worker` and the same --queue";
  }
  const fitting = workers.filter(({ refuses }) => refuses[run] === undefined);
  if (fitting.length === 0) {
    const all =
      workers.length === 1 ? "the only worker refuses" : `all ${workers.length} workers refuse`;
    return `${all} this run; ${first.worker} says: ${first.refuses[run]}`;
  }
  if (fitting.some(({ playing }) => (playing[run] ?? 0) > 0)) return undefined;
  const staying = fitting.filter(({ state }) => state === "working");
  const named = listed(fitting.map(({ worker }) => worker));
  if (staying.length === 0) return `${named} fits this run, but is ending: start another worker`;
  if (staying.some((worker) => playedBy(worker) < worker.concurrency)) return undefined;
  const places = staying.reduce((sum, { concurrency }) => sum + concurrency, 0);
  return (
    `the workers that fit this run (${named}) play ${places} attempts of other runs, as many as they have room for: ` +
    "wait, or start another worker"
  );
}

function playedBy({ playing }: IdleWorker): number {
  return Object.values(playing).reduce((sum, count) => sum + count, 0);
}

/** Lists at most three names. */
function listed(names: readonly string[]): string {
  const more = names.length - 3;
  return more > 0 ? `${names.slice(0, 3).join(", ")} and ${more} more` : names.join(", ");
}
