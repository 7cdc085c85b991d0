import type { TokenCodec } from "./codec.ts";

/** The decoder's replacement for bytes that are not a character, or not yet. */
const REPLACEMENT = "\uFFFD";

/** A single byte in byte-fallback vocabularies. */
const singleByte = /^<0x[0-9A-Fa-f]{2}>$/;

/**
 * Decodes ids that arrive in parts.
 *
 * The parts joined are exactly the codec's text of all ids. Text is returned when no later id can
 * change it, so a character that ends in a later id comes with that id. Only ids since the last
 * complete character are decoded, with the few ids before them as context. If no character is
 * completed for long, the growing rest is decoded at growing intervals, so that the work per id
 * stays bounded.
 */
export class IncrementalDecoder {
  readonly #codec: Pick<TokenCodec, "decode" | "tokenOf">;
  /** Ids that were decoded and returned, up to `#decodedCount`, then waiting ids. */
  #ids: number[] = [];
  #decodedCount = 0;
  /** Number of waiting ids at which they are decoded again. */
  #minWaitingCount = 1;
  #work: Promise<unknown> = Promise.resolve();

  constructor(codec: Pick<TokenCodec, "decode" | "tokenOf">) {
    this.#codec = codec;
  }

  /** Returns the text that is certain after these ids, or `""`. Calls resolve in order. */
  push(ids: readonly number[]): Promise<string> {
    return this.#inTurn(async () => {
      for (const id of ids) this.#ids.push(id);
      const waitingCount = this.#ids.length - this.#decodedCount;
      if (waitingCount < this.#minWaitingCount || this.#endsInBytes()) return "";
      const [before, complete] = await this.#decodeWindow();
      if (complete.endsWith(REPLACEMENT) || !complete.startsWith(before)) {
        this.#minWaitingCount = 2 * waitingCount;
        // A character has at most four bytes, and so at most four ids.
        if (waitingCount < 4) this.#minWaitingCount = 1;
        return "";
      }
      this.#keepContext();
      return complete.slice(before.length);
    });
  }

  /**
   * Returns the rest of the text, with incomplete bytes decoded as they are. The decoder can then
   * be used for another text.
   */
  end(): Promise<string> {
    return this.#inTurn(async () => {
      const [before, complete] = await this.#decodeWindow();
      this.#ids = [];
      this.#decodedCount = 0;
      this.#minWaitingCount = 1;
      return complete.slice(before.length);
    });
  }

  /** Returns the text of the context ids, and the text of all remaining ids. */
  async #decodeWindow(): Promise<readonly [before: string, complete: string]> {
    const decoded = this.#ids.slice(0, this.#decodedCount);
    return await Promise.all([this.#codec.decode(decoded), this.#codec.decode(this.#ids)]);
  }

  /**
   * True if the last id is a single byte. The text of a run of single bytes is known only at its
   * end, because an invalid run has none.
   */
  #endsInBytes(): boolean {
    const last = this.#ids.at(-1);
    return last !== undefined && singleByte.test(this.#codec.tokenOf(last) ?? "");
  }

  /** Keeps the ids that were just decoded as context for later ids. */
  #keepContext(): void {
    this.#ids.splice(0, this.#decodedCount);
    this.#decodedCount = this.#ids.length;
    this.#minWaitingCount = 1;
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#work.then(work);
    this.#work = turn.catch(() => undefined);
    return await turn;
  }
}
