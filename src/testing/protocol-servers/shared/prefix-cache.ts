/** An engine's prompt cache: the last prompt of each session. */
export interface PrefixCache {
  /** Returns the number of cached ids of the prompt, and caches the prompt. */
  take(routingKey: string | undefined, inputIds: readonly number[]): number;
  clear(): void;
}

/** Maximum number of sessions in the cache. The oldest ones are removed first. */
const SESSION_LIMIT = 2_048;

/** Creates an empty cache. */
export function createPrefixCache(): PrefixCache {
  const prompts = new Map<string, readonly number[]>();
  return {
    take(routingKey = "", inputIds) {
      const count = commonPrefixLength(prompts.get(routingKey) ?? [], inputIds);
      prompts.set(routingKey, inputIds);
      if (prompts.size > SESSION_LIMIT) prompts.delete(prompts.keys().next().value ?? "");
      return count;
    },
    clear: () => prompts.clear(),
  };
}

function commonPrefixLength(left: readonly number[], right: readonly number[]): number {
  const limit = Math.min(left.length, right.length);
  let length = 0;
  while (length < limit && left[length] === right[length]) length++;
  return length;
}
