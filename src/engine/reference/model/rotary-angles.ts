import type { DecoderShape } from "./decoder-shape.ts";
import { rotaryFrequencies } from "./rotary-frequencies.ts";

/** A table of cosines and sines by position, filled as far as sequences have reached. */
export class RotaryAngles {
  readonly #frequencies: Float32Array;
  readonly #headSize: number;
  readonly #floats: Float32Array;
  readonly #address: number;
  #count = 0;

  /** The table starts at an address in bytes; it has `headSize` floats a position. */
  constructor(shape: DecoderShape, { floats, address }: { floats: Float32Array; address: number }) {
    this.#frequencies = rotaryFrequencies(shape);
    this.#headSize = shape.headSize;
    this.#floats = floats;
    this.#address = address;
  }

  /** Sees to it that the first so many positions are in: cosines of half a head, then sines. */
  reach(count: number): void {
    for (; this.#count < count; this.#count++) {
      const start = this.#address / 4 + this.#count * this.#headSize;
      for (const [pair, frequency] of this.#frequencies.entries()) {
        // Rounded to single precision first, as the models' own code does.
        const angle = Math.fround(this.#count * frequency);
        this.#floats[start + pair] = Math.cos(angle);
        this.#floats[start + this.#headSize / 2 + pair] = Math.sin(angle);
      }
    }
  }
}
