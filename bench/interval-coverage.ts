import {
  estimateDifference,
  estimateMean,
  type Estimate,
} from "../src/report/statistics/interval.ts";
import type { BenchFigure } from "./bench-figure.ts";

/** Simulated runs for each figure. */
const runCount = 4_000;

type Random = () => number;
/** Draws the value of a task. */
type Draw = (random: Random) => number;

/** Measures the share of 95 % intervals that contain the true value, by kind of reward and number of tasks. */
export function benchIntervalCoverage(): readonly BenchFigure[] {
  return [
    ...(
      [
        [5, 0.5],
        [5, 0.8],
        [8, 0.7],
        [10, 0.9],
        [20, 0.9],
        [32, 0.9],
        [32, 0.95],
        [50, 0.95],
        [115, 0.6],
      ] as const
    ).flatMap(([count, p]) => [
      measure(`one attempt a task, ${p} succeed`, { count, truth: p, draw: hit(p) }),
      measure(`four attempts a task, ${p} succeed`, { count, truth: p, draw: hits(p, 4) }),
    ]),
    ...[5, 10, 32, 115].flatMap((count) => [
      measure("rewards from 0 to 1, even", { count, truth: 0.5, draw: (random) => random() }),
      measure("rewards from 0 to 1, most near 1", {
        count,
        truth: 0.8,
        draw: (random) => random() ** 0.25,
      }),
      measure("rewards without bounds, normal", { count, truth: 3, draw: normal }),
      measure("rewards without bounds, a long tail", {
        count,
        truth: 1,
        draw: (random) => -Math.log(1 - random()),
      }),
      ...(
        [
          [0.5, 0.5],
          [0.7, 0.9],
          [0.9, 0.95],
        ] as const
      ).map(([a, b]) =>
        measure(`difference of ${a} and ${b}`, {
          count,
          truth: b - a,
          draw: (random: Random) => hit(b)(random) - hit(a)(random),
          estimate: (values) => estimateDifference(values, 1),
        }),
      ),
    ]),
  ];
}

function measure(
  figure: string,
  {
    count,
    truth,
    draw,
    estimate = (values) => estimateMean(values),
  }: {
    readonly count: number;
    readonly truth: number;
    readonly draw: Draw;
    readonly estimate?: (values: readonly number[]) => Estimate | undefined;
  },
): BenchFigure {
  const random = createRandom(count);
  let held = 0;
  for (let run = 0; run < runCount; run++) {
    const { low = -Infinity, high = Infinity } =
      estimate(Array.from({ length: count }, () => draw(random))) ?? {};
    if (low <= truth && truth <= high) held++;
  }
  const value = Math.round((1_000 * held) / runCount) / 10;
  return { bench: "interval-coverage", figure, value, unit: "%", at: `${count} tasks` };
}

function hit(p: number): Draw {
  return (random) => (random() < p ? 1 : 0);
}

/** Returns a draw of a task's share of successes. The tasks' success rates differ, and have the mean `p`. */
function hits(p: number, attempts: number): Draw {
  return (random) => {
    // Half of the tasks have the rate p. Each of the others always succeeds or always fails.
    const rate = random() < 0.5 ? p : hit(p)(random);
    let count = 0;
    for (let attempt = 0; attempt < attempts; attempt++) count += hit(rate)(random);
    return count / attempts;
  };
}

/** **Source:** Box and Muller, Annals of Mathematical Statistics 29 (1958). */
function normal(random: Random): number {
  return 3 + 2 * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/**
 * Returns a generator of numbers from 0 up to 1, repeatable by seed.
 *
 * **Source:** mulberry32 by Tommy Ettinger, in the public domain.
 */
function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
