/** So many texts are kept. */
const keptTexts = 64;

/** Together they are no longer than this, in UTF-16 code units. */
const keptLength = 4 * 1024 * 1024;

/** What texts were read as, for texts that are met again and again. */
export class TextCache<Value> {
  readonly #values = new Map<string, Value>();
  #length = 0;

  /** What a text says; `read` makes it where it is not known. Very long ones are not kept. */
  find(text: string, read: () => Value): Value {
    if (text.length > keptLength) return read();
    const isKnown = this.#values.has(text);
    const value = isKnown ? this.#values.get(text)! : read();
    // What was used last is forgotten last.
    this.#values.delete(text);
    this.#values.set(text, value);
    if (!isKnown) this.#length += text.length;
    for (const oldest of this.#values.keys()) {
      const isBounded = this.#values.size <= keptTexts && this.#length <= keptLength;
      if (isBounded || oldest === text) break;
      this.#values.delete(oldest);
      this.#length -= oldest.length;
    }
    return value;
  }
}
