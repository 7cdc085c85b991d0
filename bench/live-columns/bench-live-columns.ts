import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { BenchFigure } from "../bench-figure.ts";
import { against } from "../checkouts.ts";

/** The report of a process with live episodes. */
export interface LiveColumnFigures {
  readonly peakMiB: number;
  /** The longest time between two turns of the event loop. */
  readonly worstMs: number;
  /** Number of times of more than 5 ms between two turns of the event loop. */
  readonly pauseCount: number;
  /** CPU of a turn. */
  readonly cpuMs: number;
  /** Size of the columns' folder. */
  readonly columnBytes: number;
  /** Size of a row of the column. */
  readonly rowBytes: number;
}

/** Attempts of 142,000 tokens, as coding agents have them, and many short ones. */
const loads = [
  { liveCount: 64, turnCount: 43, newTokens: 3_300 },
  { liveCount: 1_000, turnCount: 8, newTokens: 500 },
];

/**
 * Measures a run with routed experts of 384 bytes a token against the same run without columns: resident memory, pauses
 * of the event loop, CPU of a turn, and disk. The engine is simulated. Each side has a process of its own.
 */
export async function* benchLiveColumns(): AsyncGenerator<BenchFigure> {
  for (const load of loads) {
    const without = await play(load, "without");
    const with_ = await play(load, "with");
    const at = `${load.liveCount} live, ${load.turnCount * load.newTokens} tokens each`;
    const figure = (name: string, unit: string, value: number, baseline: number): BenchFigure => ({
      bench: "live-columns",
      figure: name,
      unit,
      at,
      value,
      ...against(value, baseline),
    });
    yield figure("resident memory, peak", "MiB", with_.peakMiB, without.peakMiB);
    yield figure("CPU of a turn", "ms", with_.cpuMs, without.cpuMs);
    yield figure("longest pause", "ms", with_.worstMs, without.worstMs);
    yield figure("pauses above 5 ms", "", with_.pauseCount, without.pauseCount);
    const tokenCount = load.liveCount * load.turnCount * load.newTokens;
    yield {
      bench: "live-columns",
      figure: "disk, a token",
      unit: "bytes",
      at,
      value: with_.columnBytes / tokenCount,
      ...against(with_.columnBytes / tokenCount, with_.rowBytes),
    };
  }
}

async function play(
  { liveCount, turnCount, newTokens }: (typeof loads)[number],
  kind: "with" | "without",
): Promise<LiveColumnFigures> {
  const main = fileURLToPath(new URL("live-columns-main.js", import.meta.url));
  const child = fork(main, [liveCount, turnCount, newTokens, kind].map(String));
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the process ${kind} columns ended with ${String(code)}`);
  });
  const [figures] = (await Promise.race([once(child, "message"), ended])) as [LiveColumnFigures];
  await ended.catch(() => undefined);
  return figures;
}
