import type { DiscardedSampling, Generation } from "./engine.ts";

/** A turn that was cut short before its first id. */
export function nothingSampled(discarded: readonly DiscardedSampling[] = []): Generation {
  const finish = { type: "length" } as const;
  return { outputIds: [], logprobs: [], finish, pieces: [], discarded };
}
