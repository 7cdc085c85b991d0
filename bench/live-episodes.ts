import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { BenchFigure } from "./bench-figure.ts";
import { ourFolder } from "./checkouts.ts";
import { median } from "./cpu-time.ts";

/** The report of a process with live episodes. */
export interface LiveFigures {
  readonly turnsPerSecond: number;
  readonly turnsPerCpuSecond: number;
  /** Delay of the event loop, 99th percentile, in milliseconds. */
  readonly delayMs: number;
  readonly worstDelayMs: number;
  /** Resident memory for each 1,000 live episodes. */
  readonly memoryMiB: number;
}

const liveCounts = [1000, 4096] as const;

/** Live episodes in the older build of the comparison. */
const baseLiveCount = 1000;

/** Measurements of each side. */
const repetitions = 3;

/** The work of each concurrent place. */
interface Load {
  /** Episodes in order. */
  readonly waves: number;
  /** Turns of each episode. Default: about six, as its task needs. */
  readonly turns?: number;
}

const oneEpisode: Load = { waves: 1 };
/** Enough turns that compilation is a small part of the time. */
const severalEpisodes: Load = { waves: 3 };
/** τ-bench's limit of turns. */
const longEpisode: Load = { waves: 1, turns: 30 };

/**
 * Measures thousands of episodes at once in one process, with an engine that answers after 200 ms. Each figure
 * comes from a new process, without code that an earlier one compiled.
 *
 * @param base - Folder of an older, built checkout: its 1,000 live episodes are compared with these 4,096.
 */
export async function* benchLiveEpisodes(base?: string): AsyncGenerator<BenchFigure> {
  if (base !== undefined) return yield* compare(base);
  for (const load of [oneEpisode, longEpisode]) {
    for (const liveCount of liveCounts) {
      const found = await keepLive(ourFolder, liveCount, load);
      const figure = (name: string, value: number, unit: string): BenchFigure => ({
        bench: "live-episodes",
        figure: name,
        value,
        unit,
        at: load.turns === undefined ? liveCount : `${liveCount}, ${load.turns} turns each`,
      });
      yield figure("turns per second", found.turnsPerSecond, "1/s");
      yield figure("turns per CPU second", found.turnsPerCpuSecond, "1/s");
      yield figure("event loop delay, 99th percentile", found.delayMs, "ms");
      yield figure("event loop delay, worst", found.worstDelayMs, "ms");
      yield figure("resident memory per 1,000 live episodes", found.memoryMiB, "MiB");
    }
  }
}

async function* compare(base: string): AsyncGenerator<BenchFigure> {
  for (const load of [oneEpisode, severalEpisodes, longEpisode]) {
    for (const liveCount of liveCounts) {
      const theirs: number[] = [];
      const ours: number[] = [];
      for (let repetition = 0; repetition < repetitions; repetition++) {
        theirs.push((await keepLive(base, baseLiveCount, load)).turnsPerCpuSecond);
        ours.push((await keepLive(ourFolder, liveCount, load)).turnsPerCpuSecond);
      }
      const [value, baseline] = [median(ours), median(theirs)];
      const length = load.turns === undefined ? "" : ` of ${load.turns} turns`;
      yield {
        bench: "live-episodes",
        figure: "turns per CPU second",
        value,
        unit: "1/s",
        baseline,
        ratio: value / baseline,
        at: `${liveCount} live, baseline ${baseLiveCount}, ${load.waves} episodes a place${length}`,
      };
    }
  }
}

async function keepLive(folder: string, liveCount: number, load: Load): Promise<LiveFigures> {
  const main = fileURLToPath(new URL("live-main.js", import.meta.url));
  const { waves, turns = 0 } = load;
  const child = fork(main, [folder, ...[liveCount, waves, turns].map(String)], {
    execArgv: ["--expose-gc"],
  });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the process with ${liveCount} live episodes ended with ${String(code)}`);
  });
  const [figures] = (await Promise.race([once(child, "message"), ended])) as [LiveFigures];
  await ended.catch(() => undefined);
  return figures;
}
