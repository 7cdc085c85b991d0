import type { BenchFigure } from "../bench-figure.ts";
import { against, checkoutsOf } from "../checkouts.ts";
import { median } from "../cpu-time.ts";
import { LongRuns } from "./long-runs.ts";
import type { ProcessUsage } from "../usage-probe.ts";
import { attemptCount, turnCount } from "./play-attempts.ts";

/** Attempts that are live at once when memory is measured. */
const manyCount = 256;

const roundCount = 3;

/** Numbers of turns, for the CPU of the first turns and of the last ones. */
const marks = { first: 1, early: 12, late: 32, last: turnCount };

/** The figures of one side, from all rounds. */
interface Found {
  /** CPU per turn, in milliseconds. */
  readonly cpu: number[];
  /** CPU of one of the last turns, divided by that of one of the first. */
  readonly growth: number[];
  readonly peak: number[];
}

/**
 * Measures a run in the shape of today's coding agents: attempts of 43 turns, a prompt of 5,000 tokens that grows to
 * 140,000, and some 440 sampled tokens a turn. The command line plays it against a test server in this process, and
 * writes slime's rows. The CPU of a run of single turns is subtracted. The tools' results are source code: in ASCII,
 * and with emoji, box drawing or accents in 2 % of the lines.
 *
 *     npm run bench -- --only long-attempts --base DIR
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchLongAttempts(base?: string): AsyncGenerator<BenchFigure> {
  await using runs = await LongRuns.open();
  const sides = checkoutsOf(base);
  for (const isUnicode of [false, true]) {
    const found = sides.map((): Found => ({ cpu: [], growth: [], peak: [] }));
    for (let round = 0; round < roundCount; round++) {
      for (const [place, checkout] of sides.entries()) {
        const play = async (turns: number): Promise<ProcessUsage> =>
          await runs.play({ checkout, turns, isUnicode, count: attemptCount });
        const first = await play(marks.first);
        const early = await play(marks.early);
        const late = await play(marks.late);
        const last = await play(marks.last);
        const { cpu, growth, peak } = found[place]!;
        cpu.push((last.cpuMs - first.cpuMs) / (attemptCount * (marks.last - marks.first)));
        const earlyMs = (early.cpuMs - first.cpuMs) / (marks.early - marks.first);
        const lateMs = (last.cpuMs - late.cpuMs) / (marks.last - marks.late);
        growth.push(lateMs / earlyMs);
        peak.push(last.peakMiB);
      }
    }
    const at = isUnicode ? "other characters in 2 % of the lines" : "ASCII";
    const figureOf = figures("long-attempts", at, found);
    yield figureOf("CPU per turn", "ms", "cpu");
    yield figureOf("CPU of a turn after 100,000 tokens against one after 5,000", "x", "growth");
    yield figureOf(`peak memory, ${attemptCount} attempts live`, "MiB", "peak");
  }
}

/**
 * Measures the memory of 256 of these attempts at once, which hold 38 million tokens at their end. Takes 2 minutes of
 * CPU for each side, or 10 for old builds.
 *
 *     npm run bench -- --only many-long-attempts --base DIR
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchManyLongAttempts(base?: string): AsyncGenerator<BenchFigure> {
  await using runs = await LongRuns.open();
  const sides = checkoutsOf(base);
  const found: Found[] = [];
  for (const checkout of sides) {
    const run = { checkout, turns: turnCount, isUnicode: false, count: manyCount };
    const { peakMiB } = await runs.play(run);
    found.push({ cpu: [], growth: [], peak: [peakMiB] });
  }
  const figureOf = figures("many-long-attempts", `${manyCount} attempts live`, found);
  yield figureOf("peak memory", "MiB", "peak");
}

/** Returns a function that makes a figure from the medians of the first side and, if present, the second. */
function figures(bench: string, at: string, [ours, theirs]: readonly Found[]) {
  return (figure: string, unit: string, list: keyof Found): BenchFigure => {
    const value = median(ours![list]);
    const baseline = theirs && median(theirs[list]);
    return {
      bench,
      at,
      figure,
      value,
      unit,
      ...against(value, baseline),
    };
  };
}
