import { RolloutError } from "../errors.ts";
import { takeTurn } from "../async/take-turn.ts";
import type { AddedToken } from "./codec.ts";
import { isWhiteSpaceToken } from "./white-space-token.ts";

/**
 * Number of ids that are checked between two turns of the event loop: about a millisecond's work.
 */
const idsPerTurn = 50_000;

/**
 * Creates a check that untrusted text has not become a control token. It returns the ids unchanged.
 * Added tokens that are ordinary text are allowed, and the token for unknown text.
 *
 * @throws RolloutError `internal/guard` from the check, if the ids contain any other added token.
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
 * True for tokens that the model makes of ordinary text: white space, and single characters such as
 * digits. A longer token may control something even if it is not special, such as the tokens that
 * start a turn in Command R and DeepSeek.
 */
export function isOrdinaryText({ content, special }: AddedToken): boolean {
  return isWhiteSpaceToken(content) || (!special && [...content].length === 1);
}
