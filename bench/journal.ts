import { setMaxListeners } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { playEpisode } from "../src/episode/play-episode.ts";
import { playIntoFolder } from "./play-into-folder.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { median } from "./cpu-time.ts";
import { prepareStorefront } from "./storefront-play.ts";

const episodeCount = 300;
const repetitions = 3;

/** Measures the throughput of a run with its journal, relative to the same episodes without one. */
export async function benchJournal(): Promise<BenchFigure[]> {
  const withJournal: number[] = [];
  const without: number[] = [];
  for (let repetition = 0; repetition < repetitions; repetition++) {
    without.push(await episodesPerSecond(playAll));
    withJournal.push(await episodesPerSecond(playJournalled));
  }
  const [value, baseline] = [median(withJournal), median(without)];
  return [
    {
      bench: "journal",
      figure: "episodes per second with the journal, against none",
      value,
      unit: "1/s",
      baseline,
      ratio: value / baseline,
    },
  ];
}

type Prepared = Awaited<ReturnType<typeof prepareStorefront>>;

async function episodesPerSecond(play: (prepared: Prepared) => Promise<void>): Promise<number> {
  const prepared = await prepareStorefront({ episodeCount, latencyMs: 1 });
  const startedAt = performance.now();
  await play(prepared);
  return (episodeCount * 1000) / (performance.now() - startedAt);
}

async function playAll({ plan, setup }: Prepared): Promise<void> {
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  await Promise.all(Array.from(plan, (planned) => playEpisode(planned, setup, { signal })));
}

async function playJournalled({ plan, setup }: Prepared): Promise<void> {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  try {
    await playIntoFolder(dir, { plan, setup, concurrency: episodeCount });
  } finally {
    await rm(dir, { recursive: true });
  }
}
