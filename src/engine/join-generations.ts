import { joinColumns } from "../columns/column-part.ts";
import type { Generation } from "./engine.ts";

/** Joins the generations of a turn from before and after an interruption. */
export function joinGenerations(first: Generation, second: Generation): Generation {
  const pieces = first.pieces.map((piece) => ({ ...piece, finish: "abort" as const }));
  const queued = [first.queueMs, second.queueMs].filter((ms) => ms !== undefined);
  // The prompt counts are those of the first request that sampled something.
  const start = first.outputIds.length === 0 ? second : first;
  const columns = joinColumns(first.columns, second.columns);
  return {
    ...start,
    outputIds: [...first.outputIds, ...second.outputIds],
    logprobs: [...first.logprobs, ...second.logprobs],
    finish: second.finish,
    pieces: [...pieces, ...second.pieces],
    discarded: [...first.discarded, ...second.discarded],
    ...(columns !== undefined && { columns }),
    ...(queued.length !== 0 && { queueMs: queued.reduce((sum, ms) => sum + ms, 0) }),
  };
}
