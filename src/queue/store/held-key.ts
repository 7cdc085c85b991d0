import type { Redis } from "ioredis";

/** Renews a key that is its holder's, or nobody's; 1 where it is the holder's then. One step of the store. */
export const holdScript = `
local holder = redis.call("GET", KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`;

/** Takes a key away that is its holder's; 1 where it was. */
export const leaveScript = `
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("DEL", KEYS[1])`;

/**
 * Says for `livesMs` more that the key is `token`'s. Asked for in one step: between a look and a renewal somebody
 * else could take it, whom the renewal would drive out again.
 *
 * @returns whether it is; not where somebody else has taken it.
 */
export async function holdKey(
  redis: Redis,
  key: string,
  { token, livesMs }: { readonly token: string; readonly livesMs: number },
): Promise<boolean> {
  return (await redis.eval(holdScript, 1, key, token, livesMs)) === 1;
}

/** Takes the key away, unless somebody else has taken it meanwhile. */
export async function leaveKey(redis: Redis, key: string, token: string): Promise<boolean> {
  return (await redis.eval(leaveScript, 1, key, token)) === 1;
}
