import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Episode } from "../episode/episode.ts";
import { formatMetadata } from "../episode/format-metadata.ts";
import { UsageError, describeError } from "../errors.ts";
import { writeSlimeFile, type SlimeAttempt, type SlimeSummary } from "../sink/slime-file.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import { toSamples, type Sample } from "../trajectory/sample.ts";
import { JsonlJournal } from "./jsonl-journal.ts";
import { readJsonl, readLines } from "./read-jsonl.ts";
import { sortRows } from "./sort-rows.ts";

/** An episode without its ids. */
export type EpisodeStory = Omit<Episode, "segments">;

/** An episode as `episodes.jsonl` holds it. */
export interface EpisodeRow extends EpisodeStory {
  /** The hashes of its rows in `samples.jsonl`, in their order (see `hashRow()`). */
  readonly sampleHashes: readonly string[];
}

/** Trainer formats that a run can write beside its own samples. */
export type SinkFormat = "slime";

/** What `run.json` says: everything that decides what the run plays. JSON-able. */
export interface RunManifest {
  readonly format: 1;
  readonly turnwright: string;
  /** Two runs with different ones cannot share a folder. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /** What was found at start-up: engine, capability card, and so on. */
  readonly found: Readonly<Record<string, unknown>>;
}

const slimeFile = "samples.slime.jsonl";

/**
 * The files of a run. An episode counts as finished once its line is in `episodes.jsonl`; its
 * samples are written and synced before that line, and whatever samples a crash left without one are
 * dropped when the folder is opened again.
 */
export class RunFolder implements AsyncDisposable {
  readonly dir: string;
  /** Episodes that earlier starts of this run finished. */
  readonly finished: readonly EpisodeRow[];
  readonly #episodes: JsonlJournal;
  readonly #samples: JsonlJournal;
  readonly #format: SinkFormat | undefined;
  readonly #events: JsonlJournal;

  private constructor(
    dir: string,
    finished: readonly EpisodeRow[],
    journals: {
      episodes: JsonlJournal;
      samples: JsonlJournal;
      events: JsonlJournal;
    },
    format: SinkFormat | undefined,
  ) {
    this.dir = dir;
    this.finished = finished;
    this.#episodes = journals.episodes;
    this.#samples = journals.samples;
    this.#events = journals.events;
    this.#format = format;
  }

  /**
   * Opens a run's folder: a new one, or one to resume.
   *
   * @throws UsageError where the folder holds a run of another configuration (naming what differs),
   *   or cannot be written.
   */
  static async open(
    dir: string,
    manifest: RunManifest,
    { format, retryFailed }: { format?: SinkFormat; retryFailed: boolean },
  ): Promise<RunFolder> {
    try {
      await mkdir(dir, { recursive: true });
    } catch (error) {
      throw new UsageError(`Cannot create the run folder ${dir}: ${describeError(error)}`);
    }
    await claim(dir, manifest);
    const finished = await readFinished(path.join(dir, "episodes.jsonl"), retryFailed);
    const rolloutIds = new Set(finished.map(({ rolloutId }) => rolloutId));
    if (retryFailed) {
      const kept = (text: string) => rolloutIds.has(rolloutIdOf(text, "rolloutId"));
      await keepLines(path.join(dir, "episodes.jsonl"), kept);
    }
    await keepLines(path.join(dir, "samples.jsonl"), (text) =>
      rolloutIds.has(rolloutIdOf(text, "rolloutId")),
    );
    const journals = {
      episodes: await JsonlJournal.open(path.join(dir, "episodes.jsonl")),
      samples: await JsonlJournal.open(path.join(dir, "samples.jsonl")),
      events: await JsonlJournal.open(path.join(dir, "events.jsonl")),
    };
    return new RunFolder(dir, finished, journals, format);
  }

  /** Where the training rows are. */
  get samplesFile(): string {
    return this.#samples.path;
  }

  /** Where the rows in slime's format are, when they are written. */
  get slimeFile(): string | undefined {
    return this.#format === "slime" ? path.join(this.dir, slimeFile) : undefined;
  }

  /**
   * Records a finished episode; resolves once it cannot be lost any more.
   *
   * @returns the hash of its line (see `hashRow()`).
   */
  async writeEpisode(episode: Episode): Promise<string> {
    const samples = episodeSamples(episode);
    await Promise.all(samples.map((sample) => this.#samples.append(sample)));
    const { segments: _written, ...story } = episode;
    const row: EpisodeRow = { ...story, sampleHashes: samples.map(hashRow) };
    await this.#episodes.append(row);
    return hashRow(row);
  }

  /** Records that something happened; `atMs` is in milliseconds since the epoch. */
  async writeEvent(
    event: { readonly type: string; readonly atMs: number } & Record<string, unknown>,
  ): Promise<void> {
    await this.#events.append(event);
  }

  /**
   * Puts the training rows in the order of the rollouts, whichever ended first: those of a group stand
   * together, and a run that is repeatable gives the same files. To be called when all are written.
   */
  async sortSamples(rolloutIds: readonly string[]): Promise<void> {
    const ranks = new Map(rolloutIds.map((rolloutId, index) => [rolloutId, index]));
    await this.#samples[Symbol.asyncDispose]();
    await sortRows(
      this.#samples.path,
      (text) => ranks.get(rolloutIdOf(text, "rolloutId")) ?? rolloutIds.length,
    );
  }

  /**
   * Makes the slime file, where one is asked for, out of the episodes that are finished: those of
   * groups that are whole.
   *
   * @returns what it holds; `undefined` where none is asked for.
   */
  async writeSlime(attempts: readonly SlimeAttempt[]): Promise<SlimeSummary | undefined> {
    if (this.slimeFile === undefined) return undefined;
    return await writeSlimeFile(this.slimeFile, attempts, {
      episodesFile: this.#episodes.path,
      samplesFile: this.#samples.path,
    });
  }

  async writeSummary(summary: object): Promise<void> {
    await writeWhole(path.join(this.dir, "summary.json"), summary);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#episodes[Symbol.asyncDispose]();
    await this.#samples[Symbol.asyncDispose]();
    await this.#events[Symbol.asyncDispose]();
  }
}

/** The training rows of an episode, with what a trainer's filters and rewards may want to know. */
export function episodeSamples(episode: Episode): readonly Sample[] {
  return toSamples(episode.segments, episode, episode, {}).map((sample) => ({
    ...sample,
    metadata: sampleMetadata(episode, sample),
  }));
}

/** What a training row of the episode says besides its tokens. */
export function sampleMetadata(
  episode: EpisodeStory,
  row: Pick<Sample, "turns">,
): Readonly<Record<string, unknown>> {
  const { counts, sampleIndex, environment, split, taskIndex } = episode;
  const { sampledTokenCount: _sampled, tokenCount: _all, toolCallCount: _calls, ...kept } = counts;
  const about = { environment, split, taskIndex, sampleIndex, ...kept };
  return { ...about, ...formatMetadata(row, episode.turns) };
}

async function claim(dir: string, manifest: RunManifest): Promise<void> {
  const file = path.join(dir, "run.json");
  const existing = await readManifest(file);
  if (existing === undefined) {
    const foreign = await stat(path.join(dir, "episodes.jsonl")).catch(() => undefined);
    if (foreign !== undefined) {
      throw new UsageError(
        `Cannot use ${dir}: it holds episodes but no run.json; choose another --out`,
      );
    }
    await writeWhole(file, manifest);
    return;
  }
  const before = existing.configuration;
  const now = manifest.configuration;
  const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  const different = keys.filter((key) => !isDeepStrictEqual(plain(before[key]), plain(now[key])));
  if (different.length > 0) {
    const list = different
      .map((key) => `${key} was ${JSON.stringify(before[key])} and is ${JSON.stringify(now[key])}`)
      .join("; ");
    throw new UsageError(
      `Cannot resume ${dir}: ${list}; start with the same settings or choose another --out`,
    );
  }
}

async function readManifest(file: string): Promise<RunManifest | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new UsageError(`Cannot read ${file}: ${describeError(error)}`);
  }
  try {
    const manifest = JSON.parse(text) as RunManifest;
    if (manifest.format === 1 && typeof manifest.configuration === "object") return manifest;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new UsageError(
    `Cannot read ${file}: it is not a run of this version; choose another --out`,
  );
}

async function readFinished(file: string, dropFailed: boolean): Promise<readonly EpisodeRow[]> {
  const rows = new Map<string, EpisodeRow>();
  try {
    for await (const value of readJsonl(file)) {
      const row = value as EpisodeRow;
      rows.set(row.rolloutId, row);
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`Cannot resume from ${file}: a line before the last is torn`, {
      cause: error,
    });
  }
  return [...rows.values()].filter((row) => !(dropFailed && row.outcome === "failed"));
}

/** Rows begin with their ids, so that a large row need not be parsed to learn whose it is. */
function rolloutIdOf(text: string, key: string): string {
  const match = new RegExp(`"${key}":("(?:[^"\\\\]|\\\\.)*")`).exec(text);
  return match === null ? "" : (JSON.parse(match[1]!) as string);
}

/** Rewrites the file with only the lines to keep, where there are others. */
async function keepLines(file: string, keep: (text: string) => boolean): Promise<void> {
  let hasOthers = false;
  for await (const line of readLines(file)) hasOthers ||= !keep(line);
  if (!hasOthers) return;
  const next = `${file}.next`;
  await writeFile(next, keptLines(file, keep));
  await rename(next, file);
}

async function* keptLines(file: string, keep: (text: string) => boolean): AsyncGenerator<string> {
  for await (const line of readLines(file)) {
    if (keep(line)) yield `${line}\n`;
  }
}

async function writeWhole(file: string, value: object): Promise<void> {
  const next = `${file}.next`;
  await writeFile(next, `${JSON.stringify(value, null, 2)}\n`);
  await rename(next, file);
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}
