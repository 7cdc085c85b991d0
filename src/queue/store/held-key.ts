import type { Redis } from "ioredis";

/** Renews a key that is free or held by `token`, in one step. Returns 1 if `token` holds the key afterwards. */
export const holdScript = `
local holder = redis.call("GET", KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`;

/** Removes a key that `token` holds. Returns 1 if `token` held it. */
export const leaveScript = `
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("DEL", KEYS[1])`;

/**
 * Reserves the key for `token` for another `livesMs` milliseconds. Uses one step, because a separate check and renewal
 * could overwrite another owner's reservation.
 * @returns false if another owner holds the key.
 */
export async function holdKey(
  redis: Redis,
  key: string,
  { token, livesMs }: { readonly token: string; readonly livesMs: number },
): Promise<boolean> {
  return (await redis.eval(holdScript, 1, key, token, livesMs)) === 1;
}

/** Removes the key, unless another owner has taken it. */
export async function leaveKey(redis: Redis, key: string, token: string): Promise<boolean> {
  return (await redis.eval(leaveScript, 1, key, token)) === 1;
}
