import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { packRun } from "../../src/run/index.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { against, ourFolder } from "../checkouts.ts";
import { cpuMs } from "../cpu-time.ts";
import { LongRuns } from "./long-runs.ts";
import { turnCount } from "./play-attempts.ts";

/**
 * Measures the size of a run's folder for each token of its rows: as written with `--format slime`, and after
 * `turnwright pack`. The run has 16 long attempts (see `benchLongAttempts()`). Also measures the CPU of packing.
 *
 *     npm run bench -- --only disk --base DIR
 *
 * @param base - Folder of an older, built checkout to compare with.
 */
export async function* benchDisk(base?: string): AsyncGenerator<BenchFigure> {
  await using runs = await LongRuns.open();
  const bench = "disk";
  const unit = "bytes";
  const baseline = base === undefined ? undefined : await playAndMeasure(runs, path.resolve(base));
  const { cpuMs: playMs } = await runs.play({ checkout: ourFolder, turns: turnCount });
  const written = await bytesPerToken(runs.out);
  yield {
    bench,
    figure: "a token, as written",
    value: written,
    unit,
    ...against(written, baseline),
  };
  const packMs = await cpuMs(async () => {
    await packRun(runs.out);
  });
  const packed = await bytesPerToken(runs.out);
  yield { bench, figure: "a token, packed", value: packed, unit, ...against(packed, baseline) };
  const figure = "CPU of packing, against that of playing";
  yield { bench, figure, value: packMs, unit: "ms", ...against(packMs, playMs) };
}

async function playAndMeasure(runs: LongRuns, checkout: string): Promise<number> {
  await runs.play({ checkout, turns: turnCount });
  return await bytesPerToken(runs.out);
}

/** Returns the size of a run's folder in bytes, divided by the number of tokens of its rows. */
async function bytesPerToken(dir: string): Promise<number> {
  let size = 0;
  for (const name of await readdir(dir)) size += (await stat(path.join(dir, name))).size;
  const summary: unknown = JSON.parse(await readFile(path.join(dir, "summary.json"), "utf8"));
  return size / (summary as { readonly tokenCount: number }).tokenCount;
}
