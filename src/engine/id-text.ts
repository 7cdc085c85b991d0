import { roomForIds, writeIds } from "../json/write-ids.ts";

/** Extra capacity of a text that grows, as a factor. A turn adds a small part to a prompt. */
export const growth = 1.25;

/** Maximum memory of all kept texts, in bytes: those of 70 prompts of 140,000 ids. */
const mostKeptBytes = 64 * 1024 * 1024;

/** The JSON of a growing list of ids. Later calls write only the ids that are new. */
export class IdText {
  readonly #budget: TextBudget;
  /** The JSON of the first `#count` ids without brackets, with a comma after each. */
  #bytes = Buffer.alloc(0);
  #count = 0;
  #end = 0;

  /** @param budget - Limits the memory of several texts. A text that it removes is written again when it is needed. */
  constructor(budget: TextBudget = sharedBudget) {
    this.#budget = budget;
  }

  /** Size of the memory, in bytes. */
  get size(): number {
    return this.#bytes.length;
  }

  /**
   * Returns the JSON of the first ids without brackets. The text stays valid until one of its ids is removed. Returns
   * `undefined` if the text has more ids, or if a number is below 0.
   */
  of(ids: Int32Array, count: number): Uint8Array | undefined {
    if (count < this.#count) return undefined;
    if (count > this.#count && !this.#write(ids.subarray(this.#count, count))) return undefined;
    return this.#bytes.subarray(0, this.#end - 1);
  }

  /** Forgets the text if it has more ids. */
  keepAtMost(count: number): void {
    if (this.#count > count) this.#count = this.#end = 0;
  }

  /** Forgets the text and releases its memory. Texts that were returned stay as they are. */
  release(): void {
    this.keepAtMost(0);
    this.#bytes = Buffer.alloc(0);
  }

  #write(added: Int32Array): boolean {
    const needed = this.#end + roomForIds(added);
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.ceil(needed * growth));
      grown.set(this.#bytes.subarray(0, this.#end));
      this.#budget.grows(this, grown.length - this.#bytes.length);
      this.#bytes = grown;
    }
    const { buffer, byteOffset, length } = this.#bytes;
    const end = writeIds(new DataView(buffer, byteOffset, length), this.#end, added);
    if (end < 0) return false;
    this.#end = end + 1;
    this.#count += added.length;
    return true;
  }
}

/** Limits the memory of all texts. Texts of lists that are no longer used stay until there is no room for others. */
export class TextBudget {
  readonly #limit: number;
  readonly #random: () => number;
  readonly #texts: IdText[] = [];
  #size = 0;

  /**
   * @param limit - Maximum memory of all texts, in bytes. One text may exceed it.
   * @param random - Returns a number in [0, 1). Default: `Math.random`.
   */
  constructor(limit: number, random: () => number = Math.random) {
    this.#limit = limit;
    this.#random = random;
  }

  /**
   * Makes room for a text. Releases other texts at random. The oldest text would be a bad choice, because texts are
   * used one after the other, so that the oldest is needed next.
   */
  grows(text: IdText, added: number): void {
    if (text.size === 0) this.#texts.push(text);
    this.#size += added;
    while (this.#size > this.#limit && this.#texts.length > 1) {
      const place = Math.floor(this.#random() * this.#texts.length);
      const last = this.#texts.length - 1;
      const victim = this.#texts[place] === text ? (place + 1) % this.#texts.length : place;
      const released = this.#texts[victim]!;
      this.#size -= released.size;
      released.release();
      this.#texts[victim] = this.#texts[last]!;
      this.#texts.pop();
    }
  }
}

const sharedBudget = new TextBudget(mostKeptBytes);
