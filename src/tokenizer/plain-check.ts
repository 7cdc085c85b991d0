import { assertInvariant } from "../errors.ts";
import type { AddedToken } from "./codec.ts";

/**
 * Makes the check that untrusted text has become no control token: it returns the ids as they are.
 *
 * @throws InvariantError from the check, where an added token's id is among the ids.
 */
export function createPlainCheck(addedTokens: readonly AddedToken[]): (ids: number[]) => number[] {
  const added = new Map(addedTokens.map(({ id, content }) => [id, content]));
  return (ids) => {
    for (const id of ids) {
      assertInvariant(
        !added.has(id),
        `Cannot encode text as plain: it holds ${added.get(id)} (${id}), expected no added token`,
      );
    }
    return ids;
  };
}
