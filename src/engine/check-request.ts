import { UsageError, assertInvariant } from "../errors.ts";
import type { GenerateRequest } from "./engine.ts";
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
