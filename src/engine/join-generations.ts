import type { Generation } from "./engine.ts";

/** What was sampled of a turn before an interruption and after it, as one generation. */
export function joinGenerations(first: Generation, second: Generation): Generation {
  const pieces = first.pieces.map((piece) => ({ ...piece, finish: "abort" as const }));
  const queued = [first.queueMs, second.queueMs].filter((ms) => ms !== undefined);
  // The counts are those of the request that the turn begins with.
  const begun = first.outputIds.length === 0 ? second : first;
  return {
    ...begun,
    outputIds: [...first.outputIds, ...second.outputIds],
    logprobs: [...first.logprobs, ...second.logprobs],
    finish: second.finish,
    pieces: [...pieces, ...second.pieces],
    discarded: [...first.discarded, ...second.discarded],
    ...(queued.length !== 0 && { queueMs: queued.reduce((sum, ms) => sum + ms, 0) }),
  };
}
