import type { Finish, GenerateRequest, Generation } from "./engine.ts";

type StopRules = Pick<GenerateRequest, "maxNewTokens" | "sampling" | "stopTokenIds">;

/** Returns the finish `stop` if the last id is a stop id. */
export function findStop(
  ids: readonly number[],
  rules: Omit<StopRules, "maxNewTokens">,
): Finish | undefined {
  const last = ids.at(-1);
  const stops = last !== undefined && !ignoresStops(rules) && rules.stopTokenIds.includes(last);
  return stops ? { type: "stop", matched: last } : undefined;
}

/** True if sampling continues after stop ids (`ignore_eos`). */
export function ignoresStops({ sampling }: Pick<StopRules, "sampling">): boolean {
  return sampling.extra?.["ignore_eos"] === true;
}

/**
 * Finds the finish of an interrupted request. An engine makes one more step after an abort, and
 * that step may have sampled a stop id or used up the budget. Returns `undefined` if the turn must
 * continue.
 */
export function findEnd(ids: readonly number[], rules: StopRules): Finish | undefined {
  return (
    findStop(ids, rules) ?? (ids.length >= rules.maxNewTokens ? { type: "length" } : undefined)
  );
}

/**
 * Corrects the finish `length` to `stop` if the last id is a stop id. Engines report `length` if
 * the caller cut the turn short, or if the stop id was the last one that the budget allowed.
 */
export function withEnd(generation: Generation, rules: StopRules): Generation {
  const { finish, outputIds, pieces } = generation;
  const stop = finish.type === "length" ? findStop(outputIds, rules) : undefined;
  if (stop === undefined) return generation;
  const last = pieces.at(-1);
  const ended = last === undefined ? [] : [{ ...last, finish: "stop" as const }];
  return { ...generation, finish: stop, pieces: [...pieces.slice(0, -1), ...ended] };
}
