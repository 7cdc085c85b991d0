/** A list of numbers that grows. */
export class NumberList {
  #values: Float64Array;
  #length = 0;

  constructor(capacity = 1024) {
    this.#values = new Float64Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    this.#makeRoom(1);
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  /** Adds numbers at the end. */
  append(values: Float64Array): void {
    this.#makeRoom(values.length);
    this.#values.set(values, this.#length);
    this.#length += values.length;
  }

  #makeRoom(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#values.length) return;
    const larger = new Float64Array(Math.max(needed, 2 * this.#values.length));
    larger.set(this.#values);
    this.#values = larger;
  }

  /** Returns the numbers so far as a view. Numbers that are added later are not part of it. */
  values(): Float64Array {
    return this.#values.subarray(0, this.#length);
  }
}
