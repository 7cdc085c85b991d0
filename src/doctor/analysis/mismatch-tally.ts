import { ProblemTally } from "../input/problem-tally.ts";
import { nameOf } from "../input/trainer-rows.ts";
import type { InputProblem } from "../input/trainer-row.ts";
import { isShareOver, takeTurn } from "../../async/take-turn.ts";
import { RouteTally, routeStates } from "./compare-routes.ts";
import { PairSums } from "./correlation.ts";
import { hasValue, maskShiftOf, type Shift, shiftOf, shifts, sumShifts } from "./find-shift.ts";
import type { RowPair } from "./row-pair.ts";
import { TokenTable } from "./token-table.ts";

/** A logprob above this is none: rounding does not lift it so far. In nats. */
const highestLogprob = 1e-3;

/** A row's part of the table. */
interface RowPart {
  readonly start: number;
  readonly end: number;
  /** `undefined` if the row shows none beyond doubt. */
  readonly shift: Shift | undefined;
  readonly maskShift: Shift;
  /** Trained tokens whose values are unusable, by problem. */
  readonly faults: { readonly missing: number; readonly infinite: number; readonly above: number };
  readonly name: string;
}

/** Everything that the rows of both sides show, before it is judged. */
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

/** Collects pairs of rows. */
export class MismatchTally {
  readonly #table = new TokenTable();
  readonly #parts: RowPart[] = [];
  readonly #sums = shifts.map(() => new PairSums());
  readonly #versions = new Map<string, number>();
  readonly #routes = new RouteTally();
  readonly #assumedLag: number | undefined;
  #trainedTokenCount = 0;

  /** @param assumedLag - The lag of tokens of which a version is unknown. Absent: it stays unknown. */
  constructor(assumedLag: number | undefined) {
    this.#assumedLag = assumedLag;
  }

  /** Adds a pair. Gives the event loop a turn within long rows. */
  async add({ row, trainer, routes, kinds }: RowPair): Promise<void> {
    const { lossMask: mask, logprobs: engine } = row;
    const lists = { mask, engine, trainer: trainer.logprobs };
    const sums = sumShifts(lists);
    for (const [index, own] of sums.entries()) this.#sums[index]!.addAll(own);
    const maskShift = maskShiftOf(lists);
    const states = routes && this.#routes.add(routes.engine, routes.trainer);
    const start = this.#table.length;
    const faults = { missing: 0, infinite: 0, above: 0 };
    for (let index = 0; index < mask.length; index++) {
      if (mask[index] !== 1) continue;
      if (index % 1024 === 0 && isShareOver()) await takeTurn();
      const value = trainer.logprobs[index]!;
      if (Number.isNaN(value)) faults.missing += 1;
      else if (!Number.isFinite(value)) faults.infinite += 1;
      else if (value > highestLogprob) faults.above += 1;
      const version = row.policyVersions[index]!;
      this.#table.push({
        engine: engine[index]!,
        trainer: shifts.map((shift) =>
          valueAt(trainer.logprobs, index + shift, { isOwn: shift === 0 && maskShift === 0 }),
        ),
        lag: this.#lagOf(version, trainer.policyVersion),
        version: this.#versionIndex(version),
        position: index,
        kind: kinds[index] ?? 0,
        routes: states?.[index - 1] ?? routeStates.unknown,
      });
    }
    const end = this.#table.length;
    this.#trainedTokenCount += end - start;
    this.#parts.push({ start, end, shift: shiftOf(sums), maskShift, faults, name: nameOf(row) });
  }

  #lagOf(version: string, trained: string | undefined): number {
    const isKnown = isWhole(version) && trained !== undefined && isWhole(trained);
    return isKnown ? Number(trained) - Number(version) : (this.#assumedLag ?? NaN);
  }

  #versionIndex(version: string): number {
    const index = this.#versions.get(version) ?? this.#versions.size;
    this.#versions.set(version, index);
    return index;
  }

  /** Returns what all pairs show. Rows that show no shift beyond doubt have the one that all rows together show. */
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
      trainedTokenCount: this.#trainedTokenCount,
      versions: [...this.#versions.keys()],
      sums: this.#sums,
      shiftedRows,
      maskShiftedRows,
      problems: problems.problems(),
      routes: this.#routes,
    };
  }
}

/**
 * Returns a value of the trainer, or `NaN`.
 *
 * @param isOwn - True if a 0 is the token's logprob. Elsewhere it may be the filler of a trainer that masks.
 */
function valueAt(
  logprobs: Float64Array,
  place: number,
  { isOwn }: { readonly isOwn: boolean },
): number {
  const value = logprobs[place];
  if (value === undefined || !Number.isFinite(value) || value > highestLogprob) return NaN;
  return isOwn || hasValue(value) ? value : NaN;
}

function isWhole(version: string): boolean {
  return /^\d{1,15}$/.test(version);
}
