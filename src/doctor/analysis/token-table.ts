import { NumberList } from "./number-list.ts";
import { shifts, type Shift } from "./find-shift.ts";

/** The facts about one trained token. */
export interface TokenFacts {
  readonly engine: number;
  /** The trainer's values at each of `shifts`. `NaN` where it has none. */
  readonly trainer: readonly number[];
  /** Trainer's version - token's version; `NaN` if one is unknown. */
  readonly lag: number;
  /** The index of the token's policy version. */
  readonly version: number;
  /** Index in the row. */
  readonly position: number;
  /** Index of its kind. */
  readonly kind: number;
  /** The state of the routes of the token before it. */
  readonly routes: number;
}

const columnNames = ["engine", "lag", "version", "position", "kind", "routes"] as const;

/** All trained tokens that both sides have logprobs of: about 90 bytes a token. */
export class TokenTable {
  readonly #columns = Object.fromEntries(
    columnNames.map((name) => [name, new NumberList()]),
  ) as Readonly<Record<(typeof columnNames)[number], NumberList>>;
  readonly #trainer = shifts.map(() => new NumberList());

  get length(): number {
    return this.#columns.engine.length;
  }

  push(facts: TokenFacts): void {
    for (const name of columnNames) this.#columns[name].push(facts[name]);
    for (const [index, list] of this.#trainer.entries()) list.push(facts.trainer[index]!);
  }

  column(name: (typeof columnNames)[number]): Float64Array {
    return this.#columns[name].values();
  }

  /** The trainer's values at a shift. */
  trainerAt(shift: Shift): Float64Array {
    return this.#trainer[shifts.indexOf(shift)]!.values();
  }
}
