import { spend } from "../evaluate/budget.ts";
import { TemplateError } from "../template-error.ts";
import type { TemplateObject } from "./template-value.ts";

/** Jinja's limit on ranges in sandboxed templates. */
const maxRangeLength = 100_000;

/** A Python `range`. */
export class Range implements TemplateObject {
  readonly pythonType = "range";
  readonly #start: bigint;
  readonly #stop: bigint;
  readonly #step: bigint;
  readonly #length: number;

  /** @throws TemplateError for a step of 0, or for more than 100,000 items. */
  constructor(start: bigint, stop: bigint, step: bigint) {
    if (step === 0n) throw new TemplateError("ValueError", "range() arg 3 must not be zero");
    const distance = step > 0n ? stop - start : start - stop;
    const stride = step > 0n ? step : -step;
    const length = distance > 0n ? (distance + stride - 1n) / stride : 0n;
    if (length > maxRangeLength) {
      throw new TemplateError(
        "OverflowError",
        `Range too big. The sandbox blocks ranges larger than MAX_RANGE (${maxRangeLength}).`,
      );
    }
    this.#start = start;
    this.#stop = stop;
    this.#step = step;
    this.#length = Number(length);
  }

  length(): number {
    return this.#length;
  }

  itemAt(index: number): bigint | undefined {
    return index < this.#length ? this.#start + BigInt(index) * this.#step : undefined;
  }

  *iterate(): IterableIterator<bigint> {
    for (let index = 0; index < this.#length; index++) {
      spend(1);
      yield this.itemAt(index) as bigint;
    }
  }

  /** A part of the range, with bounds that fit its length. */
  slice(
    resolve: (length: number) => {
      readonly start: number;
      readonly stop: number;
      readonly step: number;
    },
  ): Range {
    const { start, stop, step } = resolve(this.#length);
    const at = (index: number) => this.#start + BigInt(index) * this.#step;
    return new Range(at(start), at(stop), this.#step * BigInt(step));
  }

  repr(): string {
    const step = this.#step === 1n ? "" : `, ${this.#step}`;
    return `range(${this.#start}, ${this.#stop}${step})`;
  }
}
