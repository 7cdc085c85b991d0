import { PairSums } from "./correlation.ts";

/** The shifts that are tried. At shift s, the value of token i stands at i + s in the trainer's list. */
export const shifts = [-2, -1, 0, 1, 2] as const;
/** Number of positions by which a list is moved. */
export type Shift = (typeof shifts)[number];

/** A row's lists, as the search for shifts reads them. */
interface RowLists {
  readonly mask: readonly (0 | 1)[];
  readonly engine: readonly number[];
  readonly trainer: Float64Array;
}

/** The smallest number of pairs with which a single row can show a shift. */
const leastPairs = 16;

/** The part of the mean absolute difference below which a shift must reduce it in order to count. */
const leftPart = 0.5;

/** Mean absolute difference in nats below which no shift is searched. */
const leastDifference = 0.002;

/**
 * Returns one `PairSums` for each of `shifts`: its pairs are the engine's logprob of a trained token and the trainer's
 * logprob at the shifted place.
 */
export function sumShifts({ mask, engine, trainer }: RowLists): readonly PairSums[] {
  return shifts.map((shift) => {
    const sums = new PairSums();
    for (let index = 0; index < mask.length; index++) {
      const place = index + shift;
      if (mask[index] !== 1 || mask[place] !== 1) continue;
      const value = trainer[place]!;
      if (Number.isFinite(value)) sums.add(engine[index]!, value);
    }
    return sums;
  });
}

/** Returns the shift that the sums show with certainty, which may be 0. Returns `undefined` if they show none. */
export function shiftOf(sums: readonly PairSums[]): Shift | undefined {
  const still = sums[shifts.indexOf(0)]!;
  if (still.count < leastPairs) return undefined;
  if (still.meanAbsolute < leastDifference) return 0;
  let best: Shift | undefined;
  let least = still.meanAbsolute * leftPart;
  let others = Infinity;
  for (const [index, shift] of shifts.entries()) {
    const { count, meanAbsolute, correlation = 0 } = sums[index]!;
    if (shift !== 0) others = Math.min(others, meanAbsolute);
    const isBetter = correlation > (still.correlation ?? 0) + 0.2;
    if (count < leastPairs || meanAbsolute >= least || !isBetter) continue;
    best = shift;
    least = meanAbsolute;
  }
  return best ?? (still.meanAbsolute < others * leftPart ? 0 : undefined);
}

/**
 * Returns the shift of the trainer's mask: the number of positions by which the trainer's values other than 0 are moved
 * against the row's trained tokens. 0 if the mask is not moved, or if the trainer has values at other positions, too.
 */
export function maskShiftOf({ mask, trainer }: Omit<RowLists, "engine">): Shift {
  let trainedCount = 0;
  let valueCount = 0;
  const hits = shifts.map(() => 0);
  for (let index = 0; index < mask.length; index++) {
    if (mask[index] === 1) trainedCount += 1;
    if (!hasValue(trainer[index])) continue;
    valueCount += 1;
    for (const [at, shift] of shifts.entries()) if (mask[index - shift] === 1) hits[at]! += 1;
  }
  // Values of 0 may be logprobs of certain tokens, and a shifted mask may leave the row.
  const isMask = valueCount > 0 && valueCount <= trainedCount;
  const best = Math.max(...hits);
  const isMoved = best > hits[shifts.indexOf(0)]! && best === valueCount;
  return isMask && isMoved ? shifts[hits.indexOf(best)]! : 0;
}

/** True if a value may be a logprob. False for values with which a trainer fills masked tokens. */
export function hasValue(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value) && value !== 0;
}
