import type { DecoderShape } from "./decoder-shape.ts";
import { rotaryFrequencies } from "./rotary-frequencies.ts";

/** A table of cosines and sines by position, computed up to the longest sequence so far. */
export class RotaryAngles {
  readonly #frequencies: Float32Array;
  readonly #headSize: number;
  readonly #floats: Float32Array;
  readonly #address: number;
  #count = 0;

  /** Creates an empty table at an address in bytes. The table has `headSize` floats per position. */
  constructor(shape: DecoderShape, { floats, address }: { floats: Float32Array; address: number }) {
    this.#frequencies = rotaryFrequencies(shape);
    this.#headSize = shape.headSize;
    this.#floats = floats;
    this.#address = address;
  }

  /**
   * Computes the entries of the first `count` positions. An entry has the cosines of half a head, and then the sines.
   */
  extendTo(count: number): void {
    for (; this.#count < count; this.#count++) {
      const start = this.#address / 4 + this.#count * this.#headSize;
      for (const [pair, frequency] of this.#frequencies.entries()) {
        // Rounded to single precision first, as in the models' own code.
        const angle = Math.fround(this.#count * frequency);
        this.#floats[start + pair] = Math.cos(angle);
        this.#floats[start + this.#headSize / 2 + pair] = Math.sin(angle);
      }
    }
  }
}
