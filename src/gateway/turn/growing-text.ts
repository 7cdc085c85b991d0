import type { TokenCodec } from "../../tokenizer/codec.ts";

/**
 * The text of ids that arrive one after the other. Text is released once no later id can change it: a
 * character may end only in a later id.
 */
export class GrowingText {
  readonly #codec: Pick<TokenCodec, "decode">;
  readonly #ids: number[] = [];
  /** Ids before `#start` are not looked at any more; those before `#end` are released. */
  #start = 0;
  #end = 0;
  readonly #released: string[] = [];

  constructor(codec: Pick<TokenCodec, "decode">) {
    this.#codec = codec;
  }

  async push(ids: readonly number[]): Promise<string> {
    for (const id of ids) this.#ids.push(id);
    const before = await this.#codec.decode(this.#ids.slice(this.#start, this.#end));
    const text = await this.#codec.decode(this.#ids.slice(this.#start));
    if (!text.startsWith(before) || text.endsWith(replacement)) return "";
    this.#start = this.#end;
    this.#end = this.#ids.length;
    const piece = text.slice(before.length);
    this.#released.push(piece);
    return piece;
  }

  /** The rest of the text, with whatever cannot be decoded in it. */
  async end(): Promise<string> {
    const whole = await this.#codec.decode(this.#ids);
    const released = this.#released.join("");
    return whole.startsWith(released) ? whole.slice(released.length) : "";
  }
}

/** What stands in a text for bytes that are no character, or not yet one. */
const replacement = "\u{fffd}";
