import { workerAliveKey } from "./keys.ts";
import type { QueueStore } from "./queue-store.ts";

/**
 * Removes workers without a heartbeat from a hash. The check and the removal are one step, because
 * a worker may send a heartbeat at any moment.
 */
export const takeOutScript = `
local gone = 0
for index, worker in ipairs(ARGV) do
  if redis.call("EXISTS", KEYS[index + 1]) == 0 then
    redis.call("HDEL", KEYS[1], worker)
    gone = gone + 1
  end
end
return gone
`;

/**
 * Removes workers without a heartbeat from a hash.
 * @returns the number of removed workers.
 */
export async function takeOutDead(
  redis: QueueStore["redis"],
  key: string,
  workers: readonly string[],
): Promise<number> {
  if (workers.length === 0) return 0;
  const keys = [key, ...workers.map((worker) => workerAliveKey(worker))];
  return Number(await redis.eval(takeOutScript, keys.length, ...keys, ...workers));
}
