import { NumberList } from "./number-list.ts";
import { shifts, type Shift } from "./find-shift.ts";

/** The facts about one trained token. */
export interface TokenFacts {
  readonly engine: number;
  /** The trainer's values at each of `shifts`. `NaN` for a shift at which the trainer has no value. */
  readonly trainer: readonly number[];
  /** The trainer's version minus the token's version. `NaN` if a version is unknown. */
  readonly lag: number;
  /** The index of the token's policy version. */
  readonly version: number;
  /** Index in the row. */
  readonly position: number;
  /** Index of its kind. */
  readonly kind: number;
  /** The state of the routes of the previous token. */
  readonly routes: number;
}

const columnNames = ["engine", "lag", "version", "position", "kind", "routes"] as const;

/** Trained tokens that both sides have logprobs of: about 90 bytes a token. */
export class TokenTable {
  readonly #columns: Readonly<Record<(typeof columnNames)[number], NumberList>>;
  readonly #trainer: readonly NumberList[];

  /** @param capacity - The expected number of tokens. */
  constructor(capacity?: number) {
    this.#columns = Object.fromEntries(
      columnNames.map((name) => [name, new NumberList(capacity)]),
    ) as Readonly<Record<(typeof columnNames)[number], NumberList>>;
    this.#trainer = shifts.map(() => new NumberList(capacity));
  }

  get length(): number {
    return this.#columns.engine.length;
  }

  push(facts: TokenFacts): void {
    for (const name of columnNames) this.#columns[name].push(facts[name]);
    for (const [index, list] of this.#trainer.entries()) list.push(facts.trainer[index]!);
  }

  /**
   * Adds the tokens of another table.
   *
   * @param change - Columns that replace those of the other table.
   */
  append(
    other: TokenTable,
    change: Readonly<Partial<Record<(typeof columnNames)[number], Float64Array>>>,
  ): void {
    for (const name of columnNames) {
      this.#columns[name].append(change[name] ?? other.column(name));
    }
    for (const [index, list] of this.#trainer.entries())
      list.append(other.trainerAt(shifts[index]!));
  }

  column(name: (typeof columnNames)[number]): Float64Array {
    return this.#columns[name].values();
  }

  /** Returns the trainer's values at a shift. */
  trainerAt(shift: Shift): Float64Array {
    return this.#trainer[shifts.indexOf(shift)]!.values();
  }
}
