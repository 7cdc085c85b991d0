import type { RowEvidence } from "../analysis/row-evidence.ts";
import type { RunFacts } from "../verdict/evidence.ts";

/** A compared row. */
export interface ComparedRow {
  /** The name of the row, unique among all runs. */
  readonly key: string;
  readonly evidence: RowEvidence;
  /** The facts about its run. */
  readonly facts: RunFacts;
  readonly routes: RouteState;
}

/** The state of a row's routes. */
export type RouteState =
  /** The run has none. */
  | { readonly type: "none" }
  /** The engine's routes were freed after the row was acknowledged. */
  | { readonly type: "freed" }
  /** The trainer posted none. The routes of `neededCount` tokens decide the trained ones. */
  | { readonly type: "engine-only"; readonly neededCount: number }
  /** Both sides have routes. The trainer's lack `missingCount` tokens. */
  | { readonly type: "both"; readonly missingCount: number };

/** A row counts as this many tokens at least, because each has its own objects. */
const leastTokens = 16;

/** The newest compared rows. Their trained tokens are bounded, and with them the memory: about 100 bytes a token. */
export class RowWindow {
  readonly #limit: number;
  readonly #rows = new Map<string, ComparedRow>();
  #size = 0;
  #droppedCount = 0;

  /** @param limit - Maximum number of trained tokens. The newest row stays in any case. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Number of rows that later ones have displaced. */
  get droppedCount(): number {
    return this.#droppedCount;
  }

  /** The rows, oldest first. */
  get rows(): readonly ComparedRow[] {
    return [...this.#rows.values()];
  }

  /** Adds a row. It replaces an earlier comparison of the same row. */
  add(row: ComparedRow): void {
    this.#remove(row.key);
    this.#rows.set(row.key, row);
    this.#size += sizeOf(row);
    for (const [key] of this.#rows) {
      if (this.#size <= this.#limit || this.#rows.size === 1) return;
      this.#remove(key);
      this.#droppedCount += 1;
    }
  }

  /** Adds the rows of another window, which are newer. */
  addAll(other: RowWindow): void {
    if (other.#droppedCount > 0) {
      // Rows of this window are older than those that the other one has dropped.
      this.#droppedCount += other.#droppedCount + this.#rows.size;
      this.#rows.clear();
      this.#size = 0;
    }
    for (const row of other.#rows.values()) this.add(row);
  }

  #remove(key: string): void {
    const row = this.#rows.get(key);
    if (row === undefined) return;
    this.#rows.delete(key);
    this.#size -= sizeOf(row);
  }
}

function sizeOf({ evidence }: ComparedRow): number {
  return Math.max(evidence.table.length, leastTokens);
}
