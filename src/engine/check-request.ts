import { UsageError, assertInvariant } from "../errors.ts";
import type { GenerateRequest } from "./engine.ts";
import { findForeignId, idExpectation } from "./token-id.ts";

/**
 * Refuses a policy call that cannot be sent, whoever makes it. An id that the model does not have ends some
 * servers as a whole, so none is sent.
 *
 * @throws UsageError
 */
export function checkRequest(request: GenerateRequest): void {
  const fault = findFault(request);
  if (fault !== undefined) throw new UsageError(fault);
}

/**
 * Asserts the same of a policy call of our own: where it cannot be sent, the bug is on this side. An engine
 * never asserts it: its caller may be an agent, a judge or another engine.
 *
 * @throws InvariantError
 */
export function assertRequest(request: GenerateRequest): void {
  const fault = findFault(request);
  assertInvariant(fault === undefined, fault ?? "");
}

/** Why a policy call cannot be sent; nothing where it can. */
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
