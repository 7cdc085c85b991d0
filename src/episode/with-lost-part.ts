import type { Generation } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { isSoundFailure } from "./check/is-sound-failure.ts";

/**
 * The failure of a turn of which a part was sampled before: that part is lost with it, and is accounted for as what
 * the failed request itself lost is. Whatever else was thrown stays as it is, such as an abort or the plain error of an
 * engine of one's own, and says nothing of that part.
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
  const whole = new RolloutError(code, message, {
    cause,
    retryable,
    discarded: [...lost, ...error.discarded],
  });
  if (stack !== undefined) whole.stack = stack;
  return whole;
}
