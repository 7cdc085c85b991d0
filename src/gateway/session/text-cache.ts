/** Maximum number of kept texts. */
const keptTexts = 64;

/** Maximum total length of the kept texts, in UTF-16 code units. */
const keptLength = 4 * 1024 * 1024;

/** Caches the parsed value of texts that occur repeatedly. */
export class TextCache<Value> {
  readonly #values = new Map<string, Value>();
  #length = 0;

  /**
   * Returns the cached value of a text, or the result of `read`. Longer texts than the maximum are
   * not cached.
   */
  find(text: string, read: () => Value): Value {
    if (text.length > keptLength) return read();
    const isKnown = this.#values.has(text);
    const value = isKnown ? this.#values.get(text)! : read();
    // Moves the text to the end, so that the least recently used one is evicted first.
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
