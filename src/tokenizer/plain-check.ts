import { RolloutError } from "../errors.ts";
import { takeTurn } from "../async/take-turn.ts";
import type { AddedToken } from "./codec.ts";
import { isWhiteSpaceToken } from "./white-space-token.ts";

/** How many ids are checked between two turns on the event loop: about a millisecond's work. */
const idsPerTurn = 50_000;

/**
 * Makes the check that untrusted text has become no control token: it returns the ids as they are. Added tokens that
 * are ordinary text may be among them, and the one that stands for what the vocabulary lacks.
 *
 * @throws RolloutError `internal/guard` from the check, where any other added token's id is among the ids.
 */
export function createPlainCheck(
  addedTokens: readonly AddedToken[],
): (ids: number[]) => Promise<number[]> {
  const control = new Map(
    addedTokens
      .filter((token) => !isOrdinaryText(token) && token.unknown !== true)
      .map(({ id, content }) => [id, content]),
  );
  return async (ids) => {
    let count = 0;
    for (const id of ids) {
      if (++count % idsPerTurn === 0) await takeTurn();
      const literal = control.get(id);
      if (literal === undefined) continue;
      throw new RolloutError(
        "internal/guard",
        "Cannot keep control tokens out of untrusted text: the tokenizer's own model makes the added token " +
          `${literal} (${id}) of it; choose the guard policy "hf-parity", or "special-only" for a token that ` +
          "is not special",
      );
    }
    return ids;
  };
}

/**
 * What a model makes of ordinary text and controls nothing: white space, and single characters such as digits. Longer
 * tokens may control something, special or not: Command R's and DeepSeek's that begin a turn are not special.
 */
export function isOrdinaryText({ content, special }: AddedToken): boolean {
  return isWhiteSpaceToken(content) || (!special && [...content].length === 1);
}
