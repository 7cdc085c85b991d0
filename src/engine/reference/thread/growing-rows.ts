import { encodeRagged } from "../../../columns/ragged-rows.ts";

/** Rows of different lengths that grow. */
export class GrowingRows {
  readonly #counts: number[] = [];
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];

  /** Adds a row. All rows have logprobs, or none. */
  add(ids: readonly number[], logprobs: readonly number[] = []): void {
    this.#counts.push(ids.length);
    for (const id of ids) this.#ids.push(id);
    for (const logprob of logprobs) this.#logprobs.push(logprob);
  }

  toBytes(): Uint8Array {
    return encodeRagged({
      counts: Uint32Array.from(this.#counts),
      ids: Int32Array.from(this.#ids),
      logprobs: Float32Array.from(this.#logprobs),
    });
  }
}
