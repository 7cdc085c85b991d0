import { ownBug } from "../errors.ts";
import { takeTurn } from "../internal/take-turn.ts";
import type { AddedToken } from "./codec.ts";

/** How many ids are checked between two turns on the event loop: about a millisecond's work. */
const idsPerTurn = 50_000;

/**
 * Makes the check that untrusted text has become no control token: it returns the ids as they are.
 *
 * @throws InvariantError from the check, where an added token's id is among the ids.
 */
export function createPlainCheck(
  addedTokens: readonly AddedToken[],
): (ids: number[]) => Promise<number[]> {
  const added = new Map(addedTokens.map(({ id, content }) => [id, content]));
  return async (ids) => {
    let count = 0;
    for (const id of ids) {
      if (++count % idsPerTurn === 0) await takeTurn();
      const literal = added.get(id);
      if (literal === undefined) continue;
      throw ownBug(
        `Cannot encode text as plain: it holds ${literal} (${id}), expected no added token`,
      );
    }
    return ids;
  };
}
