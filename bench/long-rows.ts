import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Episode } from "../src/episode/episode.ts";
import { playEpisode } from "../src/episode/play-episode.ts";
import { RunFolder } from "../src/run/folder/run-folder.ts";
import { benchManifest } from "./play-into-folder.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { median } from "./cpu-time.ts";
import { prepareStorefront } from "./storefront-play.ts";

const tokenCount = 100_000;
const rowCount = 20;

/** Measures how long the event loop is blocked while rows of a hundred thousand tokens are written. */
export async function benchLongRows(): Promise<BenchFigure[]> {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  try {
    const episode = await playLong();
    await using folder = await RunFolder.open(dir, benchManifest, { retryFailed: false });
    const pauses: number[] = [];
    for (let index = 0; index < rowCount; index++) {
      const rolloutId = `${episode.rolloutId}-${index}`;
      pauses.push(await longestPause(() => folder.writeEpisode({ ...episode, rolloutId })));
    }
    const figure = (name: string, value: number): BenchFigure => ({
      bench: "long-rows",
      figure: name,
      value,
      unit: "ms",
      at: `${tokenCount} tokens`,
    });
    return [
      figure("longest pause of the event loop while a row is written, median", median(pauses)),
      figure("the worst of all rows", Math.max(...pauses)),
    ];
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** Plays an episode and extends its only segment to the given length, nearly all of it sampled. */
async function playLong(): Promise<Episode> {
  const { plan, setup } = await prepareStorefront({ episodeCount: 1, latencyMs: 0 });
  const { signal } = new AbortController();
  const [planned] = [...plan];
  const episode = await playEpisode(planned!, setup, { signal });
  const [segment] = episode.segments;
  const each = <Value>(of: (index: number) => Value): readonly Value[] =>
    Array.from({ length: tokenCount }, (_, index) => of(index));
  const isSampled = (index: number): boolean => index >= segment!.promptLength;
  return {
    ...episode,
    segments: [
      {
        ...segment!,
        tokenIds: each((index) => (index * 7919) % 151_936),
        lossMask: each((index) => (isSampled(index) ? 1 : 0)),
        logprobs: each((index) => (isSampled(index) ? -(((index * 7919) % 9973) / 3331) : 0)),
        policyVersions: each((index) => (isSampled(index) ? "7" : "")),
      },
    ],
  };
}

/** Times between two turns of the event loop, in milliseconds. */
async function longestPause(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  let isOver = false;
  const watch = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(watch);
  };
  setImmediate(watch);
  await work();
  isOver = true;
  return longest;
}
