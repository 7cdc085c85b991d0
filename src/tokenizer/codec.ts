import type { DisguisingText } from "./disguising-text.ts";

/** A token that the tokenizer matches as a whole before any other splitting. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Whether decoders may skip it: control tokens are special, `<tool_call>` often is not. */
  readonly special: boolean;
  /** Set where the model itself makes it of whatever its vocabulary lacks. */
  readonly unknown?: true;
  /** Which text becomes its id though it does not spell it, for it is looked for in normalised text. Absent: none. */
  readonly disguise?: DisguisingText;
}

/** Text to token ids and back. Implementations do their work off the event loop or in small pieces. */
export interface TokenCodec {
  /** `native` or `javascript`. */
  readonly backend: string;
  /** Number of ids, added tokens included: every id is below it. */
  readonly vocabularySize: number;
  readonly addedTokens: readonly AddedToken[];
  /** Ids of the text; literals of added tokens become their ids. Adds no tokens of its own. */
  encode(text: string): Promise<number[]>;
  /**
   * Ids of the text; literals of added tokens are encoded as ordinary text. White space, single characters that are
   * not special and what the vocabulary lacks have the ids that the model gives them, where those are an added
   * token's, too.
   *
   * @throws RolloutError `internal/guard` where the model itself makes any other added token of the text.
   */
  encodePlain(text: string): Promise<number[]>;
  /** Text of the ids, control tokens spelled out. For reading and parsing only. */
  decode(ids: readonly number[]): Promise<string>;
  /**
   * What `encode()` gives, where it is known without asking the library: texts of which every word has
   * occurred. `undefined` where it is not; absent where it never is.
   */
  encodeNow?(text: string): number[] | undefined;
  /** What `decode()` gives, under the same terms. */
  decodeNow?(ids: readonly number[]): string | undefined;
  /** The id of an added token's or vocabulary entry's literal. */
  idOf(literal: string): number | undefined;
  /** The vocabulary's spelling of an id. */
  tokenOf(id: number): string | undefined;
  /**
   * How many bytes of text an id stands for, where `decode()` gives the bytes of all ids one after the other, in
   * UTF-8: so do byte-level tokenizers. `undefined` for what is no id; absent where it is otherwise, or not known.
   */
  byteLengthOf?(id: number): number | undefined;
  /** The bytes that an id stands for, under the same terms. Callers must not change them. */
  bytesOf?(id: number): Uint8Array | undefined;
  /**
   * Ends the thread that a codec may run; absent where it runs none. An idle thread does not keep the
   * process alive.
   */
  close?(): Promise<void>;
}
