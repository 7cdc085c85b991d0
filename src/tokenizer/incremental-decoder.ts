import type { TokenCodec } from "./codec.ts";

/** What stands for bytes that are no character, or not yet. */
const REPLACEMENT = "\uFFFD";

/** How byte-fallback vocabularies spell a single byte. */
const singleByte = /^<0x[0-9A-Fa-f]{2}>$/;

/**
 * The text of ids that come piece by piece. The parts joined are exactly what the codec makes of all
 * ids at once: text is given out when no later id can change it, so a character that ends in a later id
 * comes with that one. Only ids since the last whole character are decoded, with the few before them
 * that give them their context; where no character becomes whole for long, the ever longer rest is
 * looked at ever more seldom, so that the work for an id stays bounded.
 */
export class IncrementalDecoder {
  readonly #codec: Pick<TokenCodec, "decode" | "tokenOf">;
  /** Those whose text is given out, up to `#givenCount`, then those that wait. */
  #ids: number[] = [];
  #givenCount = 0;
  /** How many must wait before they are looked at again. */
  #patience = 1;
  #work: Promise<unknown> = Promise.resolve();

  constructor(codec: Pick<TokenCodec, "decode" | "tokenOf">) {
    this.#codec = codec;
  }

  /** The text that has become certain with these ids; `""` where none has. Calls answer in order. */
  push(ids: readonly number[]): Promise<string> {
    return this.#inTurn(async () => {
      for (const id of ids) this.#ids.push(id);
      const waitingCount = this.#ids.length - this.#givenCount;
      if (waitingCount < this.#patience || this.#endsInBytes()) return "";
      const [before, whole] = await this.#decodeWindow();
      if (whole.endsWith(REPLACEMENT) || !whole.startsWith(before)) {
        this.#patience = 2 * waitingCount;
        // A character has four bytes at most, each an id at most.
        if (waitingCount < 4) this.#patience = 1;
        return "";
      }
      this.#giveOut();
      return whole.slice(before.length);
    });
  }

  /** The rest, of whatever became of the last bytes. The decoder can then be used for another text. */
  end(): Promise<string> {
    return this.#inTurn(async () => {
      const [before, whole] = await this.#decodeWindow();
      this.#ids = [];
      this.#givenCount = 0;
      this.#patience = 1;
      return whole.slice(before.length);
    });
  }

  /** The text that was given out of the ids that are still here, and the text of them all. */
  async #decodeWindow(): Promise<readonly [before: string, whole: string]> {
    const given = this.#ids.slice(0, this.#givenCount);
    return await Promise.all([this.#codec.decode(given), this.#codec.decode(this.#ids)]);
  }

  /** What a run of single bytes means is known at its end only: one that is no text has none. */
  #endsInBytes(): boolean {
    const last = this.#ids.at(-1);
    return last !== undefined && singleByte.test(this.#codec.tokenOf(last) ?? "");
  }

  /** Keeps the ids that were just given out as context for those that come. */
  #giveOut(): void {
    this.#ids.splice(0, this.#givenCount);
    this.#givenCount = this.#ids.length;
    this.#patience = 1;
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#work.then(work);
    this.#work = turn.catch(() => undefined);
    return await turn;
  }
}
