import { isShareOver, takeTurn } from "../../async/take-turn.ts";
import { nameOf } from "../input/trainer-rows.ts";
import { RouteTally, routeStates } from "./compare-routes.ts";
import type { PairSums } from "./correlation.ts";
import { hasValue, maskShiftOf, type Shift, shiftOf, shifts, sumShifts } from "./find-shift.ts";
import type { RowPair } from "./row-pair.ts";
import { TokenTable } from "./token-table.ts";

/** A logprob above this value is invalid, because rounding cannot explain it. In nats. */
const highestLogprob = 1e-3;

/**
 * The facts about one pair of rows. They take about 100 bytes for each trained token, and no memory for other tokens.
 */
export interface RowEvidence {
  readonly name: string;
  /** The row's trained tokens. `version` is an index of `versions`; `lag` is `NaN` if a version is unknown. */
  readonly table: TokenTable;
  /** The versions of the row's tokens. */
  readonly versions: readonly string[];
  /** Sums of each of `shifts`. */
  readonly sums: readonly PairSums[];
  /** The shift of the row's values. `undefined` if no shift is certain. */
  readonly shift: Shift | undefined;
  readonly maskShift: Shift;
  /** The number of trained tokens with an unusable value, by problem. */
  readonly faults: { readonly missing: number; readonly infinite: number; readonly above: number };
  /** The comparison of the routes. Absent if a side has no routes. */
  readonly routes?: RouteTally;
}

/** Examines a pair. Gives the event loop a turn within long rows. */
export async function examineRow({ row, trainer, routes, kinds }: RowPair): Promise<RowEvidence> {
  const { lossMask: mask, logprobs: engine } = row;
  const lists = { mask, engine, trainer: trainer.logprobs };
  const sums = sumShifts(lists);
  const maskShift = maskShiftOf(lists);
  const tally = routes && new RouteTally();
  const states = routes && tally!.add(routes.engine, routes.trainer);
  const table = new TokenTable(mask.reduce<number>((count, bit) => count + bit, 0));
  const versions = new Map<string, number>();
  const faults = { missing: 0, infinite: 0, above: 0 };
  for (let index = 0; index < mask.length; index++) {
    if (mask[index] !== 1) continue;
    if (index % 1024 === 0 && isShareOver()) await takeTurn();
    const value = trainer.logprobs[index]!;
    if (Number.isNaN(value)) faults.missing += 1;
    else if (!Number.isFinite(value)) faults.infinite += 1;
    else if (value > highestLogprob) faults.above += 1;
    const version = row.policyVersions[index]!;
    const versionIndex = versions.get(version) ?? versions.size;
    versions.set(version, versionIndex);
    table.push({
      engine: engine[index]!,
      trainer: shifts.map((shift) =>
        valueAt(trainer.logprobs, index + shift, { isOwn: shift === 0 && maskShift === 0 }),
      ),
      lag: lagOf(version, trainer.policyVersion),
      version: versionIndex,
      position: index,
      kind: kinds[index] ?? 0,
      routes: states?.[index - 1] ?? routeStates.unknown,
    });
  }
  return {
    name: nameOf(row),
    table,
    versions: [...versions.keys()],
    sums,
    shift: shiftOf(sums),
    maskShift,
    faults,
    ...(tally && { routes: tally }),
  };
}

/** Returns the trainer's version minus the token's version. `NaN` if a version is unknown. */
function lagOf(version: string, trained: string | undefined): number {
  const isKnown = isWhole(version) && trained !== undefined && isWhole(trained);
  return isKnown ? Number(trained) - Number(version) : NaN;
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
