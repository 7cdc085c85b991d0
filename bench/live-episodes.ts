import { setMaxListeners } from "node:events";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { playEpisode } from "../src/episode/play-episode.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { prepareStorefront } from "./storefront-play.ts";

const episodeCount = 1000;
const latencyMs = 200;

/** A thousand episodes at once in one process, against an engine that answers after 200 ms. */
export async function benchLiveEpisodes(): Promise<BenchFigure[]> {
  const { plan, setup } = await prepareStorefront({ episodeCount, latencyMs });
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  let turnCount = 0;
  const counted = { ...setup, onTurn: () => void turnCount++ };
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let peak = before;
  const watching = new AbortController();
  const watch = watchMemory(watching.signal, (rss) => {
    peak = Math.max(peak, rss);
  });
  const delay = monitorEventLoopDelay({ resolution: 5 });
  await sleep(50);
  delay.enable();
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const episodes = await Promise.all(
    Array.from(plan, (planned) => playEpisode(planned, counted, { signal })),
  );
  const elapsedSeconds = (performance.now() - startedAt) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  delay.disable();
  watching.abort();
  await watch;
  const failed = episodes.filter(({ outcome }) => outcome === "failed").length;
  if (failed > 0) throw new Error(`${failed} of ${episodeCount} episodes failed`);
  const figure = (name: string, value: number, unit: string): BenchFigure => ({
    bench: "live-episodes",
    figure: name,
    value,
    unit,
    at: episodeCount,
  });
  return [
    figure("turns per second", turnCount / elapsedSeconds, "1/s"),
    figure("turns per CPU second", (turnCount * 1e6) / (cpu.user + cpu.system), "1/s"),
    figure("event loop delay, 99th percentile", delay.percentile(99) / 1e6, "ms"),
    figure("event loop delay, worst", delay.max / 1e6, "ms"),
    figure("resident memory per 1,000 live episodes", (peak - before) / 2 ** 20, "MiB"),
  ];
}

async function watchMemory(signal: AbortSignal, see: (rss: number) => void): Promise<void> {
  while (!signal.aborted) {
    see(process.memoryUsage.rss());
    await sleep(100, undefined, { signal }).catch(() => undefined);
  }
}
