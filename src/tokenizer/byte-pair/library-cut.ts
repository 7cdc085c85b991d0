import type { JsonObject } from "../../values/is-object.ts";
import type * as library from "tokenizers";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { AddedTokenRecord } from "../added-token-records.ts";
import { byteCharacters } from "./byte-level.ts";
import { RemoteTokenizer } from "../remote/remote-tokenizer.ts";
import { callLibrary } from "../remote/tokenizer-failure.ts";
import { openThread } from "../remote/tokenizer-port.ts";
import { serveNative } from "../remote/tokenizer-server.ts";

/** A text as the library cuts it. */
export interface CutText {
  /** The bytes of its pieces. An added token is 256 plus its index in the list of added tokens. */
  readonly symbols: readonly number[] | Int32Array;
  /** `pieces[i]` is the index of the piece that `symbols[i]` belongs to. */
  readonly pieces: readonly (number | null | undefined)[] | Int32Array;
}

/** The number of byte values. Smaller symbols are bytes. */
export const byteCount = 256;

/**
 * Maximum length in bytes of a text that is cut in this thread: its result is read in a
 * millisecond.
 */
const maxByteLength = 32_768;

/**
 * The library's steps before its model: finding added tokens, normalising, cutting, and encoding
 * bytes as characters.
 *
 * The library gets a model of bytes that never merge, so that its ids are the bytes. It works on
 * its own threads. Long texts are cut in another thread, which also reads the result.
 */
export class LibraryCut {
  readonly #full: library.Tokenizer;
  readonly #plain: library.Tokenizer;
  readonly #remote: RemoteTokenizer;

  /**
   * @param outline - The document of a file whose last pre-tokenizer encodes bytes as characters.
   * @param added - The added tokens to find. None of them is a byte's character.
   * @throws if the library refuses the file.
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
        vocab: Object.fromEntries(byteCharacters.map((character, byte) => [character, byte])),
        merges: [],
      },
    });
    const [full, plain] = [documentOf(added), documentOf([])];
    const open = (document: JsonObject): library.Tokenizer => {
      const tokenizer = Tokenizer.fromString(JSON.stringify(document));
      // A file can configure truncation or padding, which must not apply to prompts.
      tokenizer.disableTruncation();
      tokenizer.disablePadding();
      return tokenizer;
    };
    this.#full = open(full);
    this.#plain = open(plain);
    const textOf = (document: JsonObject): string =>
      JSON.stringify({ ...document, truncation: null, padding: null });
    this.#remote = new RemoteTokenizer({
      open: openThread,
      serve: serveNative,
      library: "tokenizers",
      documents: { full: () => textOf(full), plain: () => textOf(plain) },
    });
  }

  /**
   * Cuts a text.
   *
   * @param instance - `plain` ignores added tokens.
   * @throws RolloutError `internal/tokenizer` if the library fails.
   */
  async cut(instance: "full" | "plain", text: string): Promise<CutText> {
    if (text.length > maxByteLength || Buffer.byteLength(text) > maxByteLength) {
      return await this.#remote.cut(instance, text);
    }
    const tokenizer = instance === "full" ? this.#full : this.#plain;
    const options = { addSpecialTokens: false };
    const encoding = await callLibrary(() => tokenizer.encode(text, null, options));
    if (isTurnOver()) await takeTurn();
    const symbols = encoding.getIds();
    if (isTurnOver()) await takeTurn();
    return { symbols, pieces: encoding.getWordIds() };
  }

  async close(): Promise<void> {
    await this.#remote.close();
  }
}
