import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import { readJsonl, readLines } from "../run/read-jsonl.ts";
import type { EpisodeRow, RunManifest } from "../run/run-folder.ts";
import type { Sample } from "../trajectory/sample.ts";

/** The finished run, or the finished part of a run, that a folder holds. */
export interface StoredRun {
  readonly dir: string;
  readonly manifest: RunManifest;
  /** The finished episodes in the order in which they ended; reads the file anew on each call. */
  rows(): AsyncGenerator<EpisodeRow>;
  /** The training rows of one rollout; reads the file anew on each call. */
  samplesOf(rolloutId: string): AsyncGenerator<Sample>;
}

/**
 * Opens a run's folder for reading.
 *
 * @throws UsageError where it is no run's folder. `rows()` throws it where a line is broken.
 */
export async function openStoredRun(dir: string): Promise<StoredRun> {
  const file = path.join(dir, "run.json");
  const manifest = await readManifest(file);
  return {
    dir,
    manifest,
    rows: () => readRows(path.join(dir, "episodes.jsonl")),
    samplesOf: (rolloutId) => readSamples(path.join(dir, "samples.jsonl"), rolloutId),
  };
}

async function readManifest(file: string): Promise<RunManifest> {
  try {
    const manifest = JSON.parse(await readFile(file, "utf8")) as RunManifest;
    if (manifest.format === 1 && typeof manifest.configuration === "object") return manifest;
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
    const what = isAbsent ? "no such file, expected a run's folder" : describeError(error);
    throw new UsageError(`Cannot read ${file}: ${what}`, { cause: error });
  }
  throw new UsageError(`Cannot read ${file}: expected a run of format 1`);
}

async function* readRows(file: string): AsyncGenerator<EpisodeRow> {
  try {
    for await (const value of readJsonl(file)) {
      const row = value as Partial<EpisodeRow> | null;
      if (typeof row?.rolloutId !== "string" || typeof row.taskId !== "string") {
        throw new UsageError(`Cannot read ${file}: a line is no episode`);
      }
      yield row as EpisodeRow;
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`Cannot read ${file}: ${describeError(error)}`, { cause: error });
  }
}

async function* readSamples(file: string, rolloutId: string): AsyncGenerator<Sample> {
  const start = `{"format":1,"rolloutId":${JSON.stringify(rolloutId)},`;
  for await (const line of readLines(file)) {
    // A row can be large: it is parsed only if it is wanted.
    if (line.startsWith(start)) yield JSON.parse(line) as Sample;
  }
}

/** Whether the path is a folder. */
export async function isFolder(file: string): Promise<boolean> {
  return await stat(file).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
