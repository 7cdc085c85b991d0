import type { Generation } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { isSoundFailure } from "./check/is-sound-failure.ts";

/**
 * Adds the ids sampled before a failure of the same turn to the failure's `discarded` list. Does not change errors
 * without a failure code, such as an abort or the plain error of a custom engine.
 */
export function withLostPart(error: unknown, { pieces, discarded }: Generation): unknown {
  const kept = pieces.map(({ requestId, tokenCount }) => ({
    requestId,
    reason: "the turn failed later",
    tokenCount,
  }));
  const lost = [...kept, ...discarded];
  if (lost.length === 0 || !isSoundFailure(error)) return error;
  const { code, message, cause, retryable, stack } = error;
  const complete = new RolloutError(code, message, {
    cause,
    retryable,
    discarded: [...lost, ...error.discarded],
  });
  if (stack !== undefined) complete.stack = stack;
  return complete;
}
