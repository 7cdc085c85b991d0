import {
  RunFolder,
  type RunFolderOptions,
  type RunManifest,
} from "../src/run/folder/run-folder.ts";
import { runRollouts, type RunOptions } from "../src/run/run-rollouts.ts";

/** The manifest of a benchmark's run. */
export const benchManifest: RunManifest = {
  format: 1,
  turnwright: "bench",
  configuration: {},
  found: {},
};

/** A run of a benchmark: each attempt is played once. */
type BenchRun = Omit<RunOptions, "folder" | "attempts" | "maxFailuresInRow" | "signal">;

/** Plays a run into a folder. The first failed attempt ends it. */
export async function playInto(folder: RunFolder, run: BenchRun): Promise<void> {
  await runRollouts({
    ...run,
    folder,
    attempts: 1,
    maxFailuresInRow: 1,
    signal: new AbortController().signal,
  });
}

/** Plays a run into the folder at `dir`. */
export async function playIntoFolder(
  dir: string,
  run: BenchRun,
  options: Partial<RunFolderOptions> = {},
): Promise<void> {
  await using folder = await RunFolder.open(dir, benchManifest, { retryFailed: false, ...options });
  await playInto(folder, run);
}
