/** Sums for the correlation of two series, and for their mean absolute difference. */
export class PairSums {
  count = 0;
  #absolute = 0;
  #x = 0;
  #y = 0;
  #xx = 0;
  #yy = 0;
  #xy = 0;

  add(x: number, y: number): void {
    this.count += 1;
    this.#absolute += Math.abs(x - y);
    this.#x += x;
    this.#y += y;
    this.#xx += x * x;
    this.#yy += y * y;
    this.#xy += x * y;
  }

  addAll(other: PairSums): void {
    this.count += other.count;
    this.#absolute += other.#absolute;
    this.#x += other.#x;
    this.#y += other.#y;
    this.#xx += other.#xx;
    this.#yy += other.#yy;
    this.#xy += other.#xy;
  }

  /** Mean absolute difference. Infinite if there are no pairs. */
  get meanAbsolute(): number {
    return this.count === 0 ? Infinity : this.#absolute / this.count;
  }

  /** Pearson's correlation; `undefined` if a series has no variance. */
  get correlation(): number | undefined {
    const [varianceX, varianceY] = [this.#varianceX, this.#varianceY];
    if (this.count < 2 || !(varianceX > 1e-12) || !(varianceY > 1e-12)) return undefined;
    const covariance = this.#xy / this.count - (this.#x / this.count) * (this.#y / this.count);
    return Math.max(-1, Math.min(1, covariance / Math.sqrt(varianceX * varianceY)));
  }

  /** The line through both means whose slope is the ratio of the standard deviations: y = slope · x + offset. */
  get line(): { readonly slope: number; readonly offset: number } | undefined {
    const { correlation } = this;
    if (correlation === undefined || correlation <= 0) return undefined;
    const slope = Math.sqrt(this.#varianceY / this.#varianceX);
    return { slope, offset: this.#y / this.count - (slope * this.#x) / this.count };
  }

  get #varianceX(): number {
    return this.#xx / this.count - (this.#x / this.count) ** 2;
  }

  get #varianceY(): number {
    return this.#yy / this.count - (this.#y / this.count) ** 2;
  }
}
