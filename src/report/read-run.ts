import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { restoreStory } from "../episode/stored-story.ts";
import { UsageError, describeError } from "../errors.ts";
import { readLines } from "../run/disk/read-jsonl.ts";
import type { EpisodeRow, RunManifest } from "../run/folder/run-folder.ts";
import { rolloutIdOfLine } from "../run/folder/sample-line.ts";
import type { Sample } from "../trajectory/sample.ts";
import { readFinishedRows } from "./finished-rows.ts";

/** The finished part of a run's folder. */
export interface StoredRun {
  readonly dir: string;
  readonly manifest: RunManifest;
  /**
   * Yields the finished episodes in the order in which they ended. Reads the file again on each
   * call.
   */
  rows(): AsyncGenerator<EpisodeRow>;
  /**
   * Yields the training rows of the finished episodes in file order. Reads the file again on each
   * call.
   */
  samples(): AsyncGenerator<Sample, void, undefined>;
  /**
   * Yields the training rows of one rollout, in any spelling of its id. Reads the files again on
   * each call.
   */
  samplesOf(rolloutId: string): AsyncGenerator<Sample, void, undefined>;
}

/** A line of `episodes.jsonl` that is not an episode. Readers skip it. */
export interface DamagedLine {
  readonly file: string;
  /** 1-based line number. */
  readonly line: number;
  readonly problem: string;
}

/** Options for opening a run's folder. */
export interface OpenStoredRunOptions {
  /**
   * Called once for each line that is not an episode. An incomplete last line is skipped, because
   * its writer never completed it. Default: such a line throws.
   */
  readonly onDamaged?: (damaged: DamagedLine) => void;
}

/**
 * Opens a run's folder for reading.
 * @throws UsageError if `dir` is not a run's folder. `rows()` throws it for a broken line without
 *   `onDamaged`; `samples()` and `samplesOf()` throw it for a broken row too.
 */
export async function openStoredRun(
  dir: string,
  { onDamaged = refuse }: OpenStoredRunOptions = {},
): Promise<StoredRun> {
  // Absolute paths, because the working directory may change before the files are read.
  const [episodesFile, samplesFile] = [
    path.resolve(dir, "episodes.jsonl"),
    path.resolve(dir, "samples.jsonl"),
  ];
  const file = path.join(dir, "run.json");
  const manifest = await readManifest(file);
  const reported = new Set<number>();
  const tellOnce = (damaged: DamagedLine): void => {
    if (reported.has(damaged.line)) return;
    reported.add(damaged.line);
    onDamaged(damaged);
  };
  const rows = (): AsyncGenerator<EpisodeRow> => readRows(episodesFile, tellOnce);
  return {
    dir,
    manifest,
    rows,
    samples: () => readFinishedRows(samplesFile, rows),
    samplesOf: (rolloutId) =>
      readFinishedRows(
        samplesFile,
        () => rowsOf(rows(), rolloutId),
        (line) => rolloutIdOfLine(Buffer.from(line)) === rolloutId,
      ),
  };
}

async function readManifest(file: string): Promise<RunManifest> {
  try {
    const manifest = JSON.parse(await readFile(file, "utf8")) as RunManifest;
    if (manifest.format === 1 && typeof manifest.configuration === "object") return manifest;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      const near = await runBelow(path.dirname(file));
      const example = near === undefined ? "" : `, such as ${near}`;
      throw new UsageError(`Cannot read ${file}: no such file, expected a run's folder${example}`);
    }
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") {
      const given = path.dirname(file);
      throw new UsageError(
        `Cannot read ${given} as a run: it is a file, expected a run's folder, such as ${path.dirname(given)}`,
      );
    }
    throw new UsageError(`Cannot read ${file}: ${describeError(error)}`);
  }
  throw new UsageError(`Cannot read ${file}: expected a run of format 1`);
}

/**
 * Finds the run that started last among the subfolders of `dir`, because users often name the
 * folder of all runs.
 */
async function runBelow(dir: string): Promise<string | undefined> {
  const names = await readdir(dir).catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      const began = await stat(path.join(dir, name, "run.json")).catch(() => undefined);
      return began === undefined ? [] : [{ run: path.join(dir, name), atMs: began.mtimeMs }];
    }),
  );
  return found.flat().toSorted((a, b) => b.atMs - a.atMs)[0]?.run;
}

function refuse({ file, line, problem }: DamagedLine): never {
  throw new UsageError(`Cannot read ${file}, line ${line}: ${problem}`);
}

async function* readRows(
  file: string,
  onDamaged: (damaged: DamagedLine) => void,
): AsyncGenerator<EpisodeRow> {
  let line = 0;
  let torn: DamagedLine | undefined;
  for await (const text of readLines(file)) {
    line += 1;
    // A line with another one after it was complete when it was written.
    if (torn !== undefined) onDamaged(torn);
    torn = undefined;
    if (text === "") continue;
    const row = parseRow(text);
    if (typeof row === "object") yield row;
    else if (row === notJson) torn = { file, line, problem: row };
    else onDamaged({ file, line, problem: row });
  }
}

const notJson = "it is not JSON, expected an episode";

/** Returns the episode, or the reason why the text is not one. */
function parseRow(text: string): EpisodeRow | string {
  let row: Partial<EpisodeRow> | null;
  try {
    row = JSON.parse(text) as Partial<EpisodeRow> | null;
  } catch {
    return notJson;
  }
  if (typeof row?.rolloutId === "string" && typeof row.taskId === "string") {
    return restoreStory(row) as EpisodeRow;
  }
  return "it is not an episode, expected one";
}

async function* rowsOf(
  rows: AsyncIterable<EpisodeRow>,
  rolloutId: string,
): AsyncGenerator<EpisodeRow> {
  for await (const row of rows) if (row.rolloutId === rolloutId) yield row;
}

/** True if the path is a folder. */
export async function isFolder(file: string): Promise<boolean> {
  return await stat(file).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
