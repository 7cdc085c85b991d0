import type { GenerateRequest, Generation } from "../engine/engine.ts";
import { isSampledLogprob, logprobRange } from "../engine/logprob-range.ts";
import { RolloutError } from "../errors.ts";

/**
 * Checks what an engine returned for a turn, before anything of it is recorded. Work grows with the
 * sampled ids.
 *
 * @throws RolloutError `engine/bad-reply` naming the field.
 */
export function checkGeneration(value: Generation, request: GenerateRequest): Generation {
  const { outputIds, logprobs, finish, pieces, discarded } = (value ?? {}) as Partial<Generation>;
  const place = `request ${request.requestId}`;
  if (!Array.isArray(outputIds) || !Array.isArray(logprobs) || !Array.isArray(pieces)) {
    throw badReply(place, "expected lists outputIds, logprobs and pieces");
  }
  if (!Array.isArray(discarded)) throw badReply(place, "expected a list discarded");
  const limit = request.vocabularySize ?? 2 ** 31;
  const badId = outputIds.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= limit);
  if (badId >= 0) {
    const why = `outputIds[${badId}] is ${String(outputIds[badId])}`;
    throw badReply(place, `${why}, expected a whole number from 0 to ${limit - 1}`);
  }
  if (logprobs.length !== outputIds.length) {
    throw badReply(place, `${outputIds.length} ids have ${logprobs.length} logprobs`);
  }
  const badLogprob = logprobs.findIndex((logprob) => !isSampledLogprob(logprob));
  if (badLogprob >= 0) {
    const why = `logprobs[${badLogprob}] is ${String(logprobs[badLogprob])}`;
    const { least, most } = logprobRange;
    throw badReply(place, `${why}, expected a number from ${least} to ${most}`);
  }
  if (outputIds.length > request.maxNewTokens) {
    throw badReply(place, `${outputIds.length} ids, expected at most ${request.maxNewTokens}`);
  }
  if (finish?.type !== "stop" && finish?.type !== "length") {
    throw badReply(place, `finish is ${JSON.stringify(finish)}, expected type stop or length`);
  }
  const total = pieces.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
  if (total !== outputIds.length) {
    throw badReply(place, `pieces of ${total} ids make up ${outputIds.length} ids`);
  }
  return value;
}

function badReply(place: string, what: string): RolloutError {
  const message = `Cannot use the engine's reply to ${place}: ${what}`;
  return new RolloutError("engine/bad-reply", message, { retryable: true });
}
