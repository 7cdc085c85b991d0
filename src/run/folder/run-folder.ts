import { isObject } from "../../values/is-object.ts";
import { isDeepStrictEqual } from "node:util";
import type { Episode } from "../../episode/episode.ts";
import { UsageError } from "../../errors.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { type EncodedLine, encodeLine } from "../disk/encode-line.ts";
import type { JsonlJournal } from "../disk/jsonl-journal.ts";
import type { RecordPolicy } from "../recording/read-recording.ts";
import type { SlimeAttempt, SlimeChoice, SlimeSummary } from "../slime/slime-file.ts";
import type { RecordedGrouping } from "./episode-events.ts";
import type { FinishedEpisode } from "./episode-row.ts";
import { columnsFolder } from "../columns/column-index.ts";
import { ColumnWriter, nextWriter } from "../columns/column-writer.ts";
import { FolderEpisodes } from "./folder-episodes.ts";
import type { FolderJournal } from "./folder-journals.ts";
import { FolderRecordings } from "./folder-recordings.ts";
import { FolderResults, slimeFile } from "./folder-results.ts";
import type { LockedFolder } from "./locked-folder.ts";
import {
  openRunFolder,
  type BaseJournals,
  type OpenedFolder,
  type RunFolderOptions,
  type SinkFormat,
} from "./open-run-folder.ts";
import { type FolderManifest, type RunManifest, writeManifest } from "./run-manifest.ts";
import { readRecordedGroups, type RecordedGroups } from "./started-groups.ts";

export type { EpisodeRow, EpisodeStory, FinishedEpisode } from "./episode-row.ts";
export type { RunFolderOptions, SinkFormat } from "./open-run-folder.ts";
export type { FolderManifest, RunManifest } from "./run-manifest.ts";

/**
 * The files of a run, open for writing. One process at a time writes them (see `RunLock`).
 *
 * An episode counts as finished once its line is in `episodes.jsonl`; its training rows are synced before that line.
 * Opening a folder removes rows without such a line, and damaged lines. Only the episodes of damaged lines are played
 * again, or set aside (see `RunFolderOptions.setsAside`).
 */
export class RunFolder implements AsyncDisposable {
  /** The folder's absolute path. It stays valid when an environment changes the working directory. */
  readonly dir: string;
  /** The folder's name as the caller gave it, for messages. */
  readonly name: string;
  /** Episodes that earlier starts finished. */
  readonly finished: readonly FinishedEpisode[];
  /** The number of attempts and branches in the groups of the last start. */
  readonly grouping: RecordedGrouping;
  /** Repairs and damage that the user should read about. */
  readonly notes: readonly string[];
  /** The member `found` of the manifest with which this start opened the folder. */
  readonly requestedFound: unknown;
  /** Rollouts that ended in earlier starts, but lost their line or rows. They are restored, or played again. */
  readonly lost: ReadonlySet<string>;
  /** The episodes whose inputs are recorded. */
  readonly record: RecordPolicy;
  readonly recordings: FolderRecordings;
  readonly results: FolderResults;
  readonly #folder: LockedFolder;
  readonly #journals: BaseJournals;
  readonly #episodes: FolderEpisodes;
  readonly #format: SinkFormat | undefined;
  #manifest: FolderManifest;
  #columns: ColumnWriter | undefined;
  #isPlayed = false;

  private constructor(
    opened: OpenedFolder,
    {
      name,
      requested,
      options,
    }: {
      readonly name: string;
      readonly requested: RunManifest;
      readonly options: RunFolderOptions;
    },
  ) {
    const { folder, journals, manifest, recordings } = opened;
    const { format, record = "all" } = options;
    this.dir = folder.dir;
    this.name = name;
    this.finished = opened.finished;
    this.grouping = opened.grouping;
    this.notes = opened.notes;
    this.requestedFound = requested.found;
    this.lost = recordings.lost;
    this.record = record;
    this.#folder = folder;
    this.#journals = journals;
    this.#manifest = manifest;
    this.#format = format;
    this.#episodes = new FolderEpisodes(folder, journals);
    this.recordings = new FolderRecordings(folder, {
      ...recordings,
      record,
      runId: manifest.runId,
    });
    this.results = new FolderResults(folder);
  }

  /**
   * Opens a run's folder: a new one, or one to resume.
   *
   * @throws UsageError if another process writes the folder, if it holds a run with another configuration or identity,
   *   or if the disk fails. The message names the process or the difference.
   */
  static async open(
    name: string,
    manifest: RunManifest,
    options: RunFolderOptions,
  ): Promise<RunFolder> {
    const opened = await openRunFolder(name, manifest, options);
    const folder = new RunFolder(opened, { name, requested: manifest, options });
    await folder.#writeMissingEvents(opened.missingEvents);
    return folder;
  }

  async #writeMissingEvents(events: readonly object[]): Promise<void> {
    if (events.length === 0) return;
    try {
      const lines: EncodedLine[] = [];
      for (const event of events) lines.push(await encodeLine(event));
      await this.#journals.events.appendLines(lines);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The content of `run.json`: the settings of the run's first start. */
  get manifest(): FolderManifest {
    return this.#manifest;
  }

  /**
   * Reserves this object for one run: `finished` and the recordings describe the folder as it was when it was opened.
   *
   * @throws UsageError if a run was already started with this object.
   */
  claimRun(): void {
    if (this.#isPlayed) {
      throw new UsageError(
        `Cannot start a run in ${this.dir}: another was started in it since it was opened, and would be played ` +
          "once more; dispose of this RunFolder and open the folder again for each start",
      );
    }
    this.#isPlayed = true;
  }

  /**
   * Adds members to `found` in `run.json`. Existing members keep their values.
   *
   * @param observed - Values that replace those in `run.json`; `undefined` removes the member.
   * @throws UsageError if the disk fails, or another process has taken the folder over.
   */
  async completeFound(known: RunManifest["found"], observed: object = {}): Promise<void> {
    const { found }: { readonly found: unknown } = this.#manifest;
    const present = isObject(found) ? found : {};
    const missing = Object.entries(known).filter(([name]) => present[name] === undefined);
    const differing = Object.entries(observed).filter(
      ([name, value]) => !isDeepStrictEqual(present[name], value),
    );
    const added = Object.fromEntries([...missing, ...differing]);
    if (Object.keys(added).length > 0) await this.updateFound(added);
  }

  /**
   * Replaces members of `found` in `run.json`. A value of `undefined` removes the member.
   *
   * @throws UsageError if the disk fails, or another process has taken the folder over.
   */
  async updateFound(changes: RunManifest["found"]): Promise<void> {
    const { found }: { readonly found: unknown } = this.#manifest;
    const all = withoutUndefined({ ...(isObject(found) && found), ...changes });
    const manifest = { ...this.#manifest, found: all };
    const { files } = this.#folder;
    await this.#folder.whileLocked(async () => await writeManifest(this.dir, manifest, { files }));
    this.#manifest = manifest;
  }

  /**
   * Resolves with true if earlier starts sampled tokens that remain in the run: in finished episodes, or in attempts
   * that can be resumed. The turns that a fork shares with another run do not count.
   */
  async holdsSampled(): Promise<boolean> {
    return this.finished.some(hasOwnTokens) || (await this.recordings.holdsResumableTurn());
  }

  /**
   * Reads finished episodes.
   *
   * @throws UsageError if one of them is missing, or the disk fails.
   */
  async readEpisodes(wanted: ReadonlySet<string>): Promise<readonly Episode[]> {
    return await this.#episodes.read(wanted);
  }

  /** Reads the events about groups that earlier starts wrote to `events.jsonl`. */
  async readGroups(): Promise<RecordedGroups> {
    const { files } = this.#folder;
    return await readRecordedGroups(this.dir, { files, runId: this.manifest.runId });
  }

  /**
   * Opens another journal in the folder. It is closed together with the folder.
   *
   * @throws UsageError if the file cannot be opened, or the folder was closed.
   */
  async openJournal(name: FolderJournal): Promise<JsonlJournal> {
    return await this.#folder.openJournal(name, (journal) => journal);
  }

  /**
   * Opens files for the side columns of this start. The folder syncs them before it writes rows, and closes them.
   *
   * @throws UsageError if the disk fails, or the folder was closed.
   */
  async openColumns(): Promise<ColumnWriter> {
    const dir = this.#folder.pathOf(columnsFolder);
    const { files } = this.#folder;
    const writer = await this.#folder.open(
      async (guard) =>
        await ColumnWriter.open(dir, { files, name: await nextWriter(dir, files), guard }),
    );
    this.#episodes.syncsFirst(() => writer.flush());
    this.#columns = writer;
    return writer;
  }

  /** The files for side columns of this start. `undefined` until `openColumns()` opened them. */
  get columns(): ColumnWriter | undefined {
    return this.#columns;
  }

  /** Number of bytes of side columns that this start has synced. `undefined` if the run has none. */
  get columnBytes(): number | undefined {
    return this.#columns?.syncedBytes;
  }

  /** The path of the training rows. */
  get samplesFile(): string {
    return this.#journals.samples.path;
  }

  /** The path of the rows in slime's format; `undefined` if the run does not write them. */
  get slimeFile(): string | undefined {
    return this.#format === "slime" ? this.#folder.pathOf(slimeFile) : undefined;
  }

  /**
   * Writes a finished episode. Resolves when the episode survives a crash.
   *
   * @returns the hash of its line (see `hashRow()`).
   * @throws UsageError if the disk fails, or another process has taken the folder over.
   */
  async writeEpisode(episode: Episode): Promise<string> {
    return await this.#episodes.write(
      episode,
      async () => await this.recordings.markUnrecorded(episode),
    );
  }

  /** Appends an event to `events.jsonl`; `atMs` is in milliseconds since the epoch. */
  async writeEvent(
    event: { readonly type: string; readonly atMs: number } & Record<string, unknown>,
  ): Promise<void> {
    await this.#journals.events.append(event);
  }

  /**
   * Sorts the training rows by rollout, in the given order. So the files of a repeatable run do not depend on the order
   * in which attempts ended. Call it after the last row was written.
   */
  async sortSamples(rolloutIds: readonly string[]): Promise<void> {
    await this.#episodes.sortSamples(rolloutIds);
  }

  /** Writes the rows of complete groups in slime's format; returns `undefined` if the run does not write them. */
  async writeSlime(
    attempts: readonly SlimeAttempt[],
    choice: SlimeChoice = {},
  ): Promise<SlimeSummary | undefined> {
    const { slimeFile: file } = this;
    if (file === undefined) return undefined;
    return await this.#episodes.writeSlime(file, attempts, choice);
  }

  /**
   * Waits for writes in progress, closes the files, and releases the lock. Call it after the run's result has resolved:
   * a run that still plays cannot write any more and fails.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    // Disposed in reverse order: the lock is released last.
    await using _folder = this.#folder;
    await using _events = this.#journals.events;
    await using _episodes = this.#journals.episodes;
    await using _samples = this.#journals.samples;
    await this.#folder.endWrites();
  }
}

function hasOwnTokens({ counts, shared }: FinishedEpisode): boolean {
  return counts.sampledTokenCount > 0 && counts.turnCount > (shared?.turnCount ?? 0);
}
