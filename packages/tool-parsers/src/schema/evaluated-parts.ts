/** The members and items of one value that some keyword evaluated. */
export class EvaluatedParts {
  readonly #names = new Set<string>();
  readonly #indexes = new Set<number>();
  #hasAllNames = false;
  #hasAllIndexes = false;

  /** The number of individually listed names and indexes. */
  get count(): number {
    return this.#names.size + this.#indexes.size;
  }

  addName(name: string): void {
    this.#names.add(name);
  }

  addAllNames(): void {
    this.#hasAllNames = true;
  }

  addIndex(index: number): void {
    this.#indexes.add(index);
  }

  addAllIndexes(): void {
    this.#hasAllIndexes = true;
  }

  /** Adds the parts that another check of the same value evaluated. */
  addAll(other: EvaluatedParts): void {
    for (const name of other.#names) this.#names.add(name);
    for (const index of other.#indexes) this.#indexes.add(index);
    this.#hasAllNames ||= other.#hasAllNames;
    this.#hasAllIndexes ||= other.#hasAllIndexes;
  }

  hasName(name: string): boolean {
    return this.#hasAllNames || this.#names.has(name);
  }

  hasIndex(index: number): boolean {
    return this.#hasAllIndexes || this.#indexes.has(index);
  }
}
