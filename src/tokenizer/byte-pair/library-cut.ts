import type * as library from "tokenizers";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { AddedTokenRecord } from "../added-token-records.ts";
import { byteSpellings } from "./byte-level.ts";
import type { JsonObject } from "../model-file.ts";
import { RemoteTokenizer } from "../remote/remote-tokenizer.ts";
import { askLibrary } from "../remote/tokenizer-failure.ts";
import { openThread } from "../remote/tokenizer-port.ts";
import { serveNative } from "../remote/tokenizer-server.ts";

/** A text as the library cuts it. */
export interface CutText {
  /** The bytes of its pieces, and for each added token 256 plus its place among the added tokens. */
  readonly symbols: readonly number[] | Int32Array;
  /** `pieces[i]`: which piece `symbols[i]` is of. */
  readonly pieces: readonly (number | null | undefined)[] | Int32Array;
}

/** Symbols below are bytes. */
export const byteCount = 256;

/** Longest text that the library cuts beside the event loop, in bytes: what it gives is read in a millisecond. */
const maxByteLength = 32_768;

/**
 * What the library does before its model, and no more: it finds added tokens, normalises, cuts, and spells the bytes.
 * Its model is one of bytes that never merge, so that its ids are the bytes.
 *
 * It works on threads of its own. Long texts are cut in another, where what it gives is also read.
 */
export class LibraryCut {
  readonly #full: library.Tokenizer;
  readonly #plain: library.Tokenizer;
  readonly #elsewhere: RemoteTokenizer;

  /**
   * @param outline - Of a file whose last pre-tokenizer spells bytes.
   * @param added - The added tokens to be found; none of them is the spelling of a byte.
   * @throws where the library refuses the file.
   */
  constructor(
    { Tokenizer }: typeof library,
    outline: JsonObject,
    added: readonly AddedTokenRecord[],
  ) {
    const documentOf = (tokens: readonly AddedTokenRecord[]): JsonObject => ({
      ...outline,
      added_tokens: tokens.map((token, place) => ({ ...token, id: byteCount + place })),
      model: {
        type: "BPE",
        vocab: Object.fromEntries(byteSpellings.map((spelling, byte) => [spelling, byte])),
        merges: [],
      },
    });
    const [full, plain] = [documentOf(added), documentOf([])];
    const open = (document: JsonObject): library.Tokenizer => {
      const tokenizer = Tokenizer.fromString(JSON.stringify(document));
      // A file may ask for texts to be cut at a length or filled up to it, which no prompt may be.
      tokenizer.disableTruncation();
      tokenizer.disablePadding();
      return tokenizer;
    };
    this.#full = open(full);
    this.#plain = open(plain);
    const textOf = (document: JsonObject): string =>
      JSON.stringify({ ...document, truncation: null, padding: null });
    this.#elsewhere = new RemoteTokenizer({
      open: openThread,
      serve: serveNative,
      library: "tokenizers",
      documents: { full: () => textOf(full), plain: () => textOf(plain) },
    });
  }

  /**
   * Cuts a text.
   *
   * @param instance - `plain` overlooks added tokens.
   * @throws RolloutError `internal/tokenizer` where it fails.
   */
  async cut(instance: "full" | "plain", text: string): Promise<CutText> {
    if (text.length > maxByteLength || Buffer.byteLength(text) > maxByteLength) {
      return await this.#elsewhere.cut(instance, text);
    }
    const tokenizer = instance === "full" ? this.#full : this.#plain;
    const options = { addSpecialTokens: false };
    const encoding = await askLibrary(() => tokenizer.encode(text, null, options));
    if (isTurnOver()) await takeTurn();
    const symbols = encoding.getIds();
    if (isTurnOver()) await takeTurn();
    return { symbols, pieces: encoding.getWordIds() };
  }

  async close(): Promise<void> {
    await this.#elsewhere.close();
  }
}
