import type { DisguisingText } from "./disguising-text.ts";

/** A token that the tokenizer finds in a text before it splits the rest. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /**
   * True if decoders may skip the token. Control tokens are special, `<tool_call>` often is not.
   */
  readonly special: boolean;
  /** Set for the token that the model uses for text that its vocabulary lacks. */
  readonly unknown?: true;
  /**
   * The texts that become this token although they differ from its content, because it is searched
   * in normalised text. Absent: none.
   */
  readonly disguise?: DisguisingText;
}

/**
 * Converts text to token ids and back. Implementations work outside the event loop or in small
 * steps.
 */
export interface TokenCodec {
  /** `native` or `javascript`. */
  readonly backend: string;
  /** Number of ids, including added tokens. Every id is below it. */
  readonly vocabularySize: number;
  readonly addedTokens: readonly AddedToken[];
  /**
   * Returns the ids of a text. Literals of added tokens become their ids. Adds no further tokens.
   */
  encode(text: string): Promise<number[]>;
  /**
   * Returns the ids of a text, with literals of added tokens encoded as ordinary text.
   *
   * White space, single characters that are not special, and text that the vocabulary lacks get the
   * ids that the model gives them, even if these are ids of added tokens.
   *
   * @throws RolloutError `internal/guard` if the model makes any other added token of the text.
   */
  encodePlain(text: string): Promise<number[]>;
  /** Returns the text of ids, including control tokens. For reading and parsing only. */
  decode(ids: readonly number[]): Promise<string>;
  /**
   * Returns the same as `encode()` if it is known without the library, because every word of the
   * text has occurred before. Otherwise returns `undefined`. Absent if the codec has no such
   * memory.
   */
  encodeNow?(text: string): number[] | undefined;
  /** Returns the same as `decode()` if it is known without the library, otherwise `undefined`. */
  decodeNow?(ids: readonly number[]): string | undefined;
  /** Returns the id of an added token or vocabulary entry. */
  idOf(literal: string): number | undefined;
  /** Returns the token text of an id in the vocabulary. */
  tokenOf(id: number): string | undefined;
  /**
   * Returns the number of bytes of an id's text, or `undefined` for an invalid id. Present if
   * `decode()` joins the bytes of all ids, as byte-level tokenizers do.
   */
  byteLengthOf?(id: number): number | undefined;
  /**
   * Returns the bytes of an id's text. Present if `byteLengthOf` is. Callers must not change them.
   */
  bytesOf?(id: number): Uint8Array | undefined;
  /**
   * Ends the codec's thread. Absent if it has none. An idle thread does not keep the process alive.
   */
  close?(): Promise<void>;
}
