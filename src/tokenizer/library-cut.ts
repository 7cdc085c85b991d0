import type * as library from "tokenizers";
import { byteSpellings } from "./byte-level.ts";
import type { JsonObject } from "./model-file.ts";
import { type AddedTokenRecord, toLibraryTokens } from "./added-token-records.ts";

/** A text as the library cuts it. */
export interface CutText {
  /** The bytes of its pieces, and for each added token 256 plus its place among the added tokens. */
  readonly symbols: readonly number[];
  /** `pieces[i]`: which piece `symbols[i]` is of. */
  readonly pieces: readonly (number | null | undefined)[];
}

/** Cuts a text on a thread of the library's own. */
export type LibraryCut = (text: string) => Promise<CutText>;

/** Symbols below are bytes. */
export const byteCount = 256;

/**
 * Makes the library do all that it does before its model, and no more: find added tokens, normalise, cut, spell
 * the bytes. Its model is one of bytes that never merge, so that its ids are the bytes.
 *
 * @param outline - Of a file whose last pre-tokenizer spells bytes.
 * @param added - The added tokens to be found; none of them is the spelling of a byte.
 * @throws where the library refuses the file.
 */
export function createLibraryCut(
  { AddedToken, Tokenizer }: typeof library,
  outline: JsonObject,
  added: readonly AddedTokenRecord[],
): LibraryCut {
  const model = {
    type: "BPE",
    vocab: Object.fromEntries(byteSpellings.map((spelling, byte) => [spelling, byte])),
    merges: [],
  };
  const document = { ...outline, added_tokens: [], truncation: null, padding: null, model };
  const tokenizer = Tokenizer.fromString(JSON.stringify(document));
  tokenizer.addAddedTokens(toLibraryTokens(AddedToken, added));
  return async (text) => {
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false });
    return { symbols: encoding.getIds(), pieces: encoding.getWordIds() };
  };
}
