import { hasNoRows } from "../../run/require-rows.ts";
import path from "node:path";
import { openStoredRun } from "../../report/read-run.ts";
import { type Files, readText } from "../../run/disk/files.ts";
import type { LineRange } from "../../run/disk/line-ranges.ts";
import { readStanding } from "../../run/disk/lock-holder.ts";
import { thisMachine } from "../../run/disk/process-place.ts";
import { lockFile } from "../../run/disk/run-lock.ts";
import { parseEpisodeRow } from "../../run/folder/episode-row.ts";
import { manifestFile } from "../../run/folder/run-manifest.ts";
import type { RunManifest } from "../../run/folder/run-folder.ts";
import { storedFiles } from "../../run/gzip/stored-files.ts";
import { rolloutIdOfLine } from "../../run/folder/sample-line.ts";
import { listTeachers } from "../../teacher/teacher-record.ts";
import { storedSettings } from "../../composition/config/stored-settings.ts";
import type { EpisodeEntry, EpisodeVersions, RunFacts, RunState } from "../model/episode-entry.ts";
import { readEpisodeHead, readEpisodeLine } from "./episode-head.ts";
import { countHits } from "../model/lists/find-hits.ts";
import type { LiveEntry } from "../model/live-episode.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { isObject } from "../../values/is-object.ts";
import type { AboutRun } from "../model/about-run.ts";
import { LineFollower } from "./line-follower.ts";
import { LiveRecordings } from "./live-recordings.ts";
import { versionsOfLine } from "./versions-of-line.ts";

/**
 * The number of bytes of an episode's line that are read first. They nearly always contain all members before the
 * messages. Otherwise the complete line is read.
 */
const episodeHeadLength = 64 * 1024;
/** The number of bytes of a row's line that are read first. */
const sampleHeadLength = 8 * 1024;

/** The number of bytes of rows that are read together to find their policy versions. */
const batchLength = 4 * 1024 * 1024;

/** The time without a heartbeat after which a writer on another machine counts as dead, in milliseconds. */
const leaseMs = 120_000;

/** The files to read: all, or only the episodes, without training rows and recordings. */
type ReadPart = "all" | "episodes";

/** Options for opening a run's folder. */
interface OpenOptions {
  /** The name of the run in links. */
  readonly key: string;
  /** The folder's absolute path. Default: the path, relative to the working directory. */
  readonly root?: string;
  readonly files?: Files;
  /** The lowest reward of a success. Default: the environment's own verdict, or the reward 1. */
  readonly successThreshold?: number | undefined;
}

/**
 * An index of a run's folder: the position of each episode's line and of each row. Keeps only ids, counts and positions
 * in memory, so that the files can have any size. Reads appended lines incrementally. Never writes to the folder.
 */
export class RunIndex {
  readonly key: string;
  readonly dir: string;
  readonly manifest: RunManifest;
  /** The folder's absolute path, which stays valid if the process changes its working directory. */
  readonly #root: string;
  readonly #files: Files;
  readonly #successThreshold: number | undefined;
  readonly #episodes: LineFollower;
  readonly #samples: LineFollower;
  readonly #recordings: LiveRecordings;
  #entries: EpisodeEntry[] = [];
  #places = new Map<string, LineRange>();
  #rows = new Map<string, LineRange[]>();
  #unread: LineRange[] = [];
  #damagedEpisodeCount = 0;
  #damagedRowCount = 0;
  #generation = 0;
  /** The number of entries, from the first on, whose rows are counted. */
  #countedEntries = 0;
  #versions = new Map<string, Set<string>>();
  #versionsQueue: { readonly rolloutId: string; readonly range: LineRange }[] = [];
  #reading: { readonly part: ReadPart; readonly done: Promise<void> } | undefined;
  /** True once all files were read. */
  #isRead = false;
  #state: RunState = "stopped";
  #teachers: readonly string[] = [];

  private constructor(
    { key, dir, root, manifest }: Pick<RunIndex, "key" | "dir" | "root" | "manifest">,
    { files, successThreshold }: Pick<OpenOptions, "successThreshold"> & { readonly files: Files },
  ) {
    this.key = key;
    this.dir = dir;
    this.manifest = manifest;
    this.#root = root;
    this.#files = files;
    this.#successThreshold = successThreshold;
    this.#episodes = new LineFollower(path.join(this.#root, "episodes.jsonl"), {
      files,
      headLength: episodeHeadLength,
      onLine: ({ head, start, end }) => this.#addEpisode(head, { start, end }),
      onReset: () => this.#forgetEpisodes(),
    });
    this.#samples = new LineFollower(path.join(this.#root, "samples.jsonl"), {
      files,
      headLength: sampleHeadLength,
      onLine: ({ head, start, end }) => this.#addRow(head, { start, end }),
      onReset: () => this.#forgetRows(),
    });
    this.#recordings = new LiveRecordings(this.#root, files);
  }

  /**
   * Opens a run's folder and builds the index.
   * @throws UsageError if it is not a run's folder.
   */
  static async open(dir: string, options: OpenOptions): Promise<RunIndex> {
    const index = await RunIndex.openUnread(dir, options);
    await index.refresh();
    return index;
  }

  /**
   * Opens a run's folder without reading its episodes.
   * @throws UsageError if it is not a run's folder.
   */
  static async openUnread(
    dir: string,
    { key, root = path.resolve(dir), files = storedFiles, successThreshold }: OpenOptions,
  ): Promise<RunIndex> {
    const { manifest } = await openStoredRun(root === path.resolve(dir) ? dir : root);
    return new RunIndex({ key, dir, root, manifest }, { files, successThreshold });
  }

  /** Reads all files, unless that was done. */
  async readOnce(): Promise<void> {
    if (!this.#isRead) await this.refresh();
  }

  /** Reads what was appended since the last call: all files, or only those that a list of runs needs. */
  async refresh(part: ReadPart = "all"): Promise<void> {
    if (part === "all") while (this.#reading?.part === "episodes") await this.#reading.done;
    this.#reading ??= { part, done: this.#read(part).finally(() => (this.#reading = undefined)) };
    await this.#reading.done;
  }

  get facts(): RunFacts {
    const { configuration, found, turnwright } = this.manifest;
    const { plan, engine, columns } = found as {
      readonly columns?: unknown;
      readonly plan?: { readonly taskIndexes?: readonly number[]; readonly sampleCount?: number };
      readonly engine?: { readonly model?: string; readonly kind?: string };
    };
    const planned = (plan?.taskIndexes?.length ?? 0) * (plan?.sampleCount ?? 0);
    const { env, split } = configuration;
    return {
      key: this.key,
      dir: this.dir,
      state: this.#state,
      generation: this.#generation,
      episodeCount: this.#entries.length,
      ...(planned > 0 && { planned }),
      ...(typeof env === "string" && { environment: env }),
      ...(typeof split === "string" && { split }),
      ...(typeof engine?.model === "string" && { model: engine.model }),
      ...(typeof engine?.kind === "string" && { engine: engine.kind }),
      ...(hasNoRows(found) && { hasNoRows: true }),
      configuration,
      ...(isObject(columns) && { columns }),
      ...(this.#teachers.length > 0 && { teachers: this.#teachers }),
      damagedCount: this.#damagedEpisodeCount + this.#damagedRowCount,
      ...(this.#successThreshold !== undefined && { successThreshold: this.#successThreshold }),
      turnwright,
    };
  }

  /** Reads the run's settings and the summary that it wrote. */
  async about(): Promise<AboutRun> {
    const { configuration, identity, found } = this.manifest;
    const settings = found["settings"];
    const summary = parseJsonText(await this.#readSummary());
    return {
      configuration,
      ...(isObject(settings) && { settings }),
      ...(identity !== undefined && { identity }),
      ...(isObject(summary) && { summary }),
    };
  }

  async #readSummary(): Promise<string> {
    return (await readText(this.#files, path.join(this.#root, "summary.json"))) ?? "";
  }

  /** The absolute path of the folder. */
  get root(): string {
    return this.#root;
  }

  /** The recordings of running episodes. */
  get recordings(): LiveRecordings {
    return this.#recordings;
  }

  /** The episodes that are being played, or were being played when the run ended, according to their recordings. */
  get running(): readonly LiveEntry[] {
    if (this.#state === "finished") return [];
    return this.#recordings.entries.filter(({ rolloutId }) => !this.#places.has(rolloutId));
  }

  /** The episodes in the order in which they ended. The list grows; do not change it. */
  get entries(): readonly EpisodeEntry[] {
    return this.#entries;
  }

  /** Returns an episode's line in the file, or `undefined` if no episode has the id. */
  async episodeLine(rolloutId: string): Promise<Buffer | undefined> {
    const place = this.#places.get(rolloutId);
    return place && (await this.#episodes.lineAt(place));
  }

  /** Returns the size in bytes of each training row of the rollout. */
  rowSizes(rolloutId: string): readonly number[] {
    return (this.#rows.get(rolloutId) ?? []).map(({ start, end }) => end - start);
  }

  /** Returns a training row's line in the file, or `undefined` if there is no such row. */
  async rowLine(rolloutId: string, segment: number): Promise<Buffer | undefined> {
    const place = this.#rows.get(rolloutId)?.[segment];
    return place && (await this.#samples.lineAt(place));
  }

  /** Counts a text in the conversations, by episode. See `countHits()`. */
  async search(text: string): Promise<Readonly<Record<string, number>>> {
    // Lines without the text's JSON form need not be parsed.
    const wanted = JSON.stringify(text).slice(1, -1).toLowerCase();
    const found: Record<string, number> = {};
    if (wanted === "") return found;
    const places = [...this.#places];
    const ranges = places.map(([, range]) => range);
    await this.#episodes.readEach(ranges, (line, place) => {
      if (!line.toString("utf8").toLowerCase().includes(wanted)) return;
      const row = parseEpisodeRow(line);
      const count = row === undefined ? 0 : countHits(row, text);
      if (count > 0) found[places[place]![0]] = count;
    });
    return found;
  }

  /** Returns the versions of the policy that sampled each episode, as far as the rows were read. */
  async versions(): Promise<EpisodeVersions> {
    for (let rows = this.#nextUnversioned(); rows.length > 0; rows = this.#nextUnversioned()) {
      const [{ range: first }, { range: last }] = [rows[0]!, rows.at(-1)!];
      const bytes = await this.#samples.lineAt({ start: first.start, end: last.end });
      // Another call may have read these rows in the meantime.
      if (this.#versionsQueue[0] !== rows[0]) continue;
      this.#versionsQueue.splice(0, rows.length);
      for (const { rolloutId, range } of rows) {
        const line = bytes.subarray(range.start - first.start, range.end - first.start);
        const known = this.#versions.get(rolloutId) ?? new Set();
        for (const version of versionsOfLine(line)) known.add(version);
        this.#versions.set(rolloutId, known);
      }
    }
    return Object.fromEntries([...this.#versions].map(([id, versions]) => [id, [...versions]]));
  }

  /** Returns the next rows to search for versions, in the order of the file: at least one, up to `batchLength`. */
  #nextUnversioned(): readonly { readonly rolloutId: string; readonly range: LineRange }[] {
    const start = this.#versionsQueue[0]?.range.start ?? 0;
    const beyond = this.#versionsQueue.findIndex(({ range }) => range.end > start + batchLength);
    return this.#versionsQueue.slice(0, beyond < 0 ? undefined : Math.max(1, beyond));
  }

  async #read(part: ReadPart): Promise<void> {
    this.#state = await this.#readState();
    // Before the episodes, so that one that ends in the meantime is not missing from both.
    if (part === "all" && this.#state !== "finished") await this.#recordings.read();
    await this.#episodes.read();
    if (this.#unread.length > 0) await this.#readWhole(this.#unread.splice(0));
    if (part === "all") {
      this.#teachers = await listTeachers(this.#root, this.#files);
      await this.#samples.read();
      this.#countRows();
      this.#isRead = true;
    }
  }

  /** Counts the rows of new entries: a run writes the rows of an episode before its line. */
  #countRows(): void {
    for (let at = this.#countedEntries; at < this.#entries.length; at++) {
      const entry = this.#entries[at]!;
      const rowCount = this.#rows.get(entry.rolloutId)?.length ?? 0;
      if (rowCount !== entry.rowCount) this.#entries[at] = { ...entry, rowCount };
    }
    this.#countedEntries = this.#entries.length;
  }

  /** Reads lines with a beginning that is not enough, and adds their episodes at the right positions. */
  async #readWhole(lines: readonly LineRange[]): Promise<void> {
    for (const range of lines) {
      const entry = readEpisodeLine(await this.#episodes.lineAt(range), 0, this.#successThreshold);
      if (entry === undefined) this.#damagedEpisodeCount++;
      else this.#place(entry, range);
    }
    const startOf = ({ rolloutId }: EpisodeEntry): number => this.#places.get(rolloutId)!.start;
    this.#entries = this.#entries
      .toSorted((left, right) => startOf(left) - startOf(right))
      .map((entry, order) => ({ ...entry, order }));
    this.#countedEntries = 0;
  }

  #addEpisode(head: Buffer, range: LineRange): void {
    const entry = readEpisodeHead(head, this.#entries.length, this.#successThreshold);
    if (entry === undefined) this.#unread.push(range);
    else this.#place(entry, range);
  }

  #place(entry: EpisodeEntry, range: LineRange): void {
    const { rolloutId } = entry;
    if (this.#places.has(rolloutId)) {
      // A later line of the same rollout takes the place of the earlier one.
      this.#entries = this.#entries.filter((other) => other.rolloutId !== rolloutId);
      this.#entries = this.#entries.map((other, order) => ({ ...other, order }));
      this.#generation++;
      this.#countedEntries = 0;
    }
    this.#places.set(rolloutId, range);
    this.#entries.push({ ...entry, order: this.#entries.length });
  }

  #addRow(head: Buffer, range: LineRange): void {
    const rolloutId = rolloutIdOfLine(head);
    if (rolloutId === undefined) {
      this.#damagedRowCount++;
      return;
    }
    const rows = this.#rows.get(rolloutId);
    if (rows === undefined) this.#rows.set(rolloutId, [range]);
    else rows.push(range);
    this.#versionsQueue.push({ rolloutId, range });
  }

  #forgetEpisodes(): void {
    this.#generation++;
    this.#countedEntries = 0;
    this.#entries = [];
    this.#places = new Map();
    this.#unread = [];
    this.#damagedEpisodeCount = 0;
  }

  #forgetRows(): void {
    this.#generation++;
    this.#countedEntries = 0;
    this.#rows = new Map();
    this.#versions = new Map();
    this.#versionsQueue = [];
    this.#damagedRowCount = 0;
  }

  async #readState(): Promise<RunState> {
    const manifest = await readText(this.#files, path.join(this.#root, manifestFile));
    if (manifest === undefined) return "removed";
    const summary = parseJsonText(await this.#readSummary());
    if (isObject(summary) && summary["end"] !== undefined) return summary["end"] as RunState;
    const standing = await readStanding(
      {
        files: this.#files,
        machine: thisMachine,
        here: await thisMachine.here(),
        leaseMs,
        fileSystemNow: () => Promise.resolve(Date.now()),
      },
      path.join(this.#root, lockFile),
    );
    return standing === undefined || standing.state === "gone" ? "stopped" : "running";
  }
}

/** Returns the run's model folder, if the run names it. */
export function modelFolderOf({ manifest }: RunIndex): string | undefined {
  const { model } = storedSettings(manifest);
  return typeof model === "string" ? model : undefined;
}
