import { workerAliveKey } from "./keys.ts";
import type { QueueStore } from "./queue-store.ts";

/** Takes workers out of a hash that give no sign of life, in one step: one may come back in this very moment. */
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

/** @returns how many of them are dead indeed. */
export async function takeOutDead(
  redis: QueueStore["redis"],
  key: string,
  workers: readonly string[],
): Promise<number> {
  if (workers.length === 0) return 0;
  const keys = [key, ...workers.map((worker) => workerAliveKey(worker))];
  return Number(await redis.eval(takeOutScript, keys.length, ...keys, ...workers));
}
