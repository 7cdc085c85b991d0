import { assertInvariant } from "../errors.ts";
import type { GenerateRequest } from "./engine.ts";
import { findForeignId, idExpectation } from "./token-id.ts";

/**
 * Asserts that a policy call can be sent. An id that the model does not have ends some servers as a
 * whole, so none is sent; where one is in a prompt, the bug is on this side.
 *
 * @throws InvariantError
 */
export function assertRequest({ promptIds, maxNewTokens, vocabularySize }: GenerateRequest): void {
  assertInvariant(maxNewTokens >= 1, "maxNewTokens is at least 1");
  const foreign = findForeignId(promptIds, vocabularySize);
  assertInvariant(
    foreign < 0,
    `Cannot sample: promptIds[${foreign}] is ${promptIds[foreign]}, ` +
      `expected ${idExpectation(vocabularySize)}`,
  );
}
