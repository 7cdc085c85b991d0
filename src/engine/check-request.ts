import { assertInvariant, RolloutError, UsageError } from "../errors.ts";
import type { GenerateRequest, ScoreRequest } from "./engine.ts";
import { findForeignId, idExpectation } from "./token-id.ts";

/**
 * Throws if a policy call cannot be sent. Some servers exit on an id that the model does not have.
 *
 * @throws UsageError
 */
export function checkRequest(request: GenerateRequest): void {
  const fault = findFault(request);
  if (fault !== undefined) throw new UsageError(fault);
}

/**
 * Asserts that a policy call of this project can be sent. An engine uses `checkRequest()` instead,
 * because its caller may be an agent, a judge or another engine.
 *
 * @throws InvariantError
 */
export function assertRequest(request: GenerateRequest): void {
  const fault = findFault(request);
  assertInvariant(fault === undefined, fault ?? "");
}

/** Returns the reason why a policy call cannot be sent, or `undefined`. */
function findFault({
  promptIds,
  maxNewTokens,
  vocabularySize,
}: GenerateRequest): string | undefined {
  if (!(maxNewTokens >= 1)) {
    return `Cannot sample: maxNewTokens is ${maxNewTokens}, expected a number of at least 1`;
  }
  const foreign = findForeignId(promptIds, vocabularySize);
  if (foreign < 0) return undefined;
  return (
    `Cannot sample: promptIds[${foreign}] is ${promptIds[foreign]}, ` +
    `expected ${idExpectation(vocabularySize)}`
  );
}

/**
 * Checks a request and returns the first index to score.
 *
 * @throws RolloutError `engine/bad-request` if the request cannot be scored.
 */
export function checkScoreRequest({
  ids,
  from = 1,
  sampling,
  vocabularySize,
}: ScoreRequest): number {
  const { temperature = 1 } = sampling;
  if (!(temperature >= 0 && temperature < Infinity)) {
    throw badScoreRequest(`temperature is ${temperature}`, "a number of at least 0");
  }
  if (ids.length === 0) throw badScoreRequest("ids is empty", "at least one id");
  const foreign = findForeignId(ids, vocabularySize);
  if (foreign >= 0) {
    throw badScoreRequest(`ids[${foreign}] is ${ids[foreign]}`, idExpectation(vocabularySize));
  }
  if (Number.isSafeInteger(from) && from >= 1 && from <= ids.length) return from;
  throw badScoreRequest(`from is ${from}`, `an index, 1 to ${ids.length}`);
}

/**
 * Checks the number of most probable ids that a request lists.
 *
 * @throws RolloutError `engine/bad-request` if it is out of range.
 */
export function checkTopCount(topCount: number): void {
  if (Number.isSafeInteger(topCount) && topCount >= 1 && topCount <= 100) return;
  throw badScoreRequest(`topCount is ${topCount}`, "a whole number, 1 to 100");
}

function badScoreRequest(problem: string, expected: string): RolloutError {
  return new RolloutError("engine/bad-request", `Cannot score: ${problem}, expected ${expected}`);
}
