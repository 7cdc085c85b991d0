import type { QueueStore } from "../store/queue-store.ts";
import { readWorkers } from "./worker-entry.ts";

/** Describes why no worker plays a run. Returns `undefined` if a worker may play it. */
export async function describeNoWorker(
  store: QueueStore,
  run: string,
): Promise<string | undefined> {
  const workers = await readWorkers(store);
  const [first] = workers;
  if (first === undefined) {
    return "no worker is there: start one with `turnwright worker` and the same --queue";
  }
  if (workers.some(({ refuses }) => refuses[run] === undefined)) return undefined;
  const reason = `${first.worker} says: ${first.refuses[run]}`;
  return workers.length === 1
    ? `the only worker refuses this run; ${reason}`
    : `all ${workers.length} workers refuse this run; ${reason}`;
}
