import { type DifferenceFigures, DifferenceTally } from "./difference-figures.ts";

/** Both sides' logprobs of some tokens. `trainer` is `NaN` where there is no value. */
export interface TokenPairs {
  readonly engine: Float64Array;
  readonly trainer: Float64Array;
}

/** Returns the figures on all tokens, or `undefined` if no token has a value. */
export function figuresOf(pairs: TokenPairs): DifferenceFigures | undefined {
  return tallyOf(pairs, () => true).figures();
}

/** Collects the tokens that `isWanted` chooses. */
export function tallyOf(
  { engine, trainer }: TokenPairs,
  isWanted: (index: number) => boolean,
): DifferenceTally {
  const tally = new DifferenceTally();
  for (let index = 0; index < engine.length; index++) {
    if (!Number.isNaN(trainer[index]!) && isWanted(index)) {
      tally.add(engine[index]!, trainer[index]!);
    }
  }
  return tally;
}

/**
 * Returns the figures on each group of tokens, in the order of the groups' keys.
 *
 * @param keyOf - A token's group.
 * @param nameOf - The name of a group.
 */
export function figuresBy(
  { engine, trainer }: TokenPairs,
  keyOf: (index: number) => number,
  nameOf: (key: number) => string,
): Readonly<Record<string, DifferenceFigures>> {
  const tallies = new Map<number, DifferenceTally>();
  for (let index = 0; index < engine.length; index++) {
    if (Number.isNaN(trainer[index]!)) continue;
    const key = keyOf(index);
    const tally = tallies.get(key) ?? new DifferenceTally();
    tally.add(engine[index]!, trainer[index]!);
    tallies.set(key, tally);
  }
  const sorted = [...tallies].toSorted(([one], [other]) => orderOf(one) - orderOf(other));
  // An object sorts names that are whole numbers by itself.
  return Object.fromEntries(sorted.map(([key, tally]) => [nameOf(key), tally.figures()!]));
}

/** Returns the sort value of a key. Keys that are not numbers come last. */
function orderOf(key: number): number {
  return Number.isNaN(key) ? Number.MAX_VALUE : key;
}

/** The first position of each group of positions. */
const positionEdges = [0, 256, 1024, 4096, 16_384, 65_536] as const;

/** Returns the group of a token's position in its row. */
export function positionGroup(position: number): number {
  return positionEdges.findLastIndex((edge) => position >= edge);
}

/** Names a group of positions, such as `256-1023`. */
export function positionName(group: number): string {
  const [start, next] = [positionEdges[group]!, positionEdges[group + 1]];
  return next === undefined ? `${start}-` : `${start}-${next - 1}`;
}

/** Returns the histogram of differences. */
export function histogramOf({ engine, trainer }: TokenPairs): {
  readonly edges: readonly number[];
  readonly counts: readonly number[];
} {
  const edges = histogramEdges;
  const counts = Array<number>(edges.length - 1).fill(0);
  for (let index = 0; index < engine.length; index++) {
    const difference = trainer[index]! - engine[index]!;
    if (Number.isNaN(difference)) continue;
    const bin = edges.findLastIndex((edge) => difference >= edge);
    counts[Math.min(counts.length - 1, Math.max(0, bin))]! += 1;
  }
  return { edges, counts };
}

/** Edges of absolute differences in nats: two a decade. */
const absoluteEdges = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3] as const;

const histogramEdges: readonly number[] = [
  -10,
  ...absoluteEdges.map((edge) => -edge).toReversed(),
  ...absoluteEdges,
  10,
];
