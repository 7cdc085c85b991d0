import type { Finish, GenerateRequest, Generation } from "./engine.ts";

type Asked = Pick<GenerateRequest, "maxNewTokens" | "sampling" | "stopTokenIds">;

/** The stop that the last id is, if it is one. */
export function findStop(
  ids: readonly number[],
  asked: Omit<Asked, "maxNewTokens">,
): Finish | undefined {
  const last = ids.at(-1);
  const stops = last !== undefined && !ignoresStops(asked) && asked.stopTokenIds.includes(last);
  return stops ? { type: "stop", matched: last } : undefined;
}

/** Whether sampling goes on behind stop ids, as engines do where they are told to. */
export function ignoresStops({ sampling }: Pick<Asked, "sampling">): boolean {
  return sampling.extra?.["ignore_eos"] === true;
}

/**
 * How sampling that was interrupted ended after all: an engine makes one more step after it was told to stop,
 * and that step may have sampled the stop id or used up the budget. Nothing where there is more to sample.
 */
export function findEnd(ids: readonly number[], asked: Asked): Finish | undefined {
  return (
    findStop(ids, asked) ?? (ids.length >= asked.maxNewTokens ? { type: "length" } : undefined)
  );
}

/**
 * What an engine handed over: behind the stop id it has come to its end, also where the engine was told to cut it
 * short, or calls it `length` because that id was the last that it was allowed.
 */
export function withEnd(generation: Generation, asked: Asked): Generation {
  const { finish, outputIds, pieces } = generation;
  const stop = finish.type === "length" ? findStop(outputIds, asked) : undefined;
  if (stop === undefined) return generation;
  const last = pieces.at(-1);
  const ended = last === undefined ? [] : [{ ...last, finish: "stop" as const }];
  return { ...generation, finish: stop, pieces: [...pieces.slice(0, -1), ...ended] };
}
