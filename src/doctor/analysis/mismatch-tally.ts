import { ProblemTally } from "../input/problem-tally.ts";
import type { InputProblem } from "../input/trainer-row.ts";
import { RouteTally } from "./compare-routes.ts";
import { PairSums } from "./correlation.ts";
import { type Shift, shiftOf, shifts } from "./find-shift.ts";
import type { RowEvidence } from "./row-evidence.ts";
import { TokenTable } from "./token-table.ts";

/** A row's part of the table. */
interface RowPart extends Pick<RowEvidence, "name" | "shift" | "maskShift" | "faults"> {
  readonly start: number;
  readonly end: number;
}

/** All facts about the rows of both sides, before they are judged. */
export interface Findings {
  readonly table: TokenTable;
  /** The trainer's values with each row's shift taken back. `NaN` where there is none. */
  readonly aligned: Float64Array;
  readonly rowCount: number;
  readonly trainedTokenCount: number;
  /** The versions that `version` of the table counts. */
  readonly versions: readonly string[];
  readonly sums: readonly PairSums[];
  readonly shiftedRows: ReadonlyMap<Shift, number>;
  readonly maskShiftedRows: ReadonlyMap<Shift, number>;
  readonly problems: readonly InputProblem[];
  readonly routes: RouteTally;
}

/** Collects the facts about pairs of rows. */
export class MismatchTally {
  readonly #table = new TokenTable();
  readonly #parts: RowPart[] = [];
  readonly #sums = shifts.map(() => new PairSums());
  readonly #versions = new Map<string, number>();
  readonly #routes = new RouteTally();
  readonly #assumedLag: number;

  /** @param assumedLag - The lag of tokens with an unknown version. `undefined` if their lag stays unknown. */
  constructor(assumedLag: number | undefined) {
    this.#assumedLag = assumedLag ?? NaN;
  }

  /** Adds a row. */
  add({ table, versions, sums, routes, ...row }: RowEvidence): void {
    for (const [index, own] of sums.entries()) this.#sums[index]!.addAll(own);
    if (routes !== undefined) this.#routes.addAll(routes);
    const places = versions.map((version) => this.#versionIndex(version));
    const start = this.#table.length;
    this.#table.append(table, {
      version: table.column("version").map((index) => places[index]!),
      lag: table.column("lag").map((lag) => (Number.isNaN(lag) ? this.#assumedLag : lag)),
    });
    const { name, shift, maskShift, faults } = row;
    this.#parts.push({ start, end: this.#table.length, shift, maskShift, faults, name });
  }

  #versionIndex(version: string): number {
    const index = this.#versions.get(version) ?? this.#versions.size;
    this.#versions.set(version, index);
    return index;
  }

  /**
   * Returns the facts about all pairs. A row without a certain shift of its own gets the shift of all rows together.
   */
  findings(): Findings {
    const common = shiftOf(this.#sums) ?? 0;
    const aligned = new Float64Array(this.#table.length);
    const shiftedRows = new Map<Shift, number>();
    const maskShiftedRows = new Map<Shift, number>();
    const problems = new ProblemTally();
    for (const { start, end, shift = common, maskShift, faults, name } of this.#parts) {
      aligned.set(this.#table.trainerAt(shift).subarray(start, end), start);
      if (shift !== 0) shiftedRows.set(shift, (shiftedRows.get(shift) ?? 0) + 1);
      else if (maskShift !== 0) {
        maskShiftedRows.set(maskShift, (maskShiftedRows.get(maskShift) ?? 0) + 1);
      }
      // The ends of a row that is moved have no values.
      const isMoved = shift !== 0 || maskShift !== 0;
      const { missing, infinite, above } = faults;
      if (missing > 0 && !isMoved) problems.add("missing-value", name, missing);
      if (infinite > 0) problems.add("not-finite", name, infinite);
      if (above > 0) problems.add("above-zero", name, above);
    }
    return {
      table: this.#table,
      aligned,
      rowCount: this.#parts.length,
      trainedTokenCount: this.#table.length,
      versions: [...this.#versions.keys()],
      sums: this.#sums,
      shiftedRows,
      maskShiftedRows,
      problems: problems.problems(),
      routes: this.#routes,
    };
  }
}
