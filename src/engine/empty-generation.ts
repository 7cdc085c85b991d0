import type { DiscardedSampling, Generation } from "./engine.ts";

/** Returns the generation of a turn that was cut short before its first id. */
export function emptyGeneration(discarded: readonly DiscardedSampling[] = []): Generation {
  const finish = { type: "length" } as const;
  return { outputIds: [], logprobs: [], finish, pieces: [], discarded };
}
