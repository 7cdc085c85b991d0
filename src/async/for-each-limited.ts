import { setMaxListeners } from "node:events";

/**
 * Runs `work` on every item, at most `limit` at a time. After the first failure, starts no more items, aborts those
 * under way, waits for them, and throws the failure.
 */
export async function forEachLimited<T>(
  items: AsyncGenerator<T>,
  limit: number,
  { work, signal }: { work: (item: T, signal: AbortSignal) => Promise<void>; signal?: AbortSignal },
): Promise<void> {
  const stop = new AbortController();
  // Each row under way adds a listener.
  setMaxListeners(0, stop.signal);
  const onAbort = (): void => stop.abort(signal?.reason);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    try {
      for (let next = await items.next(); next.done !== true; next = await items.next()) {
        if (failures.length > 0) return;
        await work(next.value, stop.signal);
      }
    } catch (error) {
      failures.push(error);
      stop.abort(error);
    }
  };
  try {
    await Promise.all(Array.from({ length: limit }, worker));
  } finally {
    signal?.removeEventListener("abort", onAbort);
    await items.return(undefined);
  }
  if (failures.length > 0) throw failures[0];
}
