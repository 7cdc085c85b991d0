import { assertOwnFolder } from "./assert-own-folder.ts";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Episode } from "../../episode/episode.ts";
import { inputsBefore, type Input } from "../../episode/inputs/input.ts";
import { UsageError } from "../../errors.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import {
  writeSlimeFile,
  type SlimeAttempt,
  type SlimeChoice,
  type SlimeSummary,
} from "../slime/slime-file.ts";
import { acquireBytes } from "../../text/lent-bytes.ts";
import { type EncodedLine, encodeLine, encodeRow } from "../disk/encode-line.ts";
import type { EpisodeRow, FinishedEpisode } from "./episode-row.ts";
import { episodeSamples } from "./episode-samples.ts";
import { type Files, diskFiles, readText } from "../disk/files.ts";
import { evaluationFiles, isEvaluation } from "./evaluation-files.ts";
import type { FolderJournal } from "./folder-journals.ts";
import { type JournalOptions, JsonlJournal } from "../disk/jsonl-journal.ts";
import { episodesFile, reconcile, samplesFile } from "./reconcile.ts";
import { recordingFile, unrecordedEnd } from "../recording/recording-line.ts";
import { RecordingJournal, type RecordingOptions } from "../recording/recording-journal.ts";
import {
  endRecording,
  indexRecordings,
  pruneRecordings,
  readBegins,
  readRecording,
  type RecordedAttempt,
  type RecordingIndex,
  type RecordPolicy,
} from "../recording/read-recording.ts";
import { readRecordedGroups, type RecordedGroups } from "./started-groups.ts";
import { groupIdOf } from "../schedule/group-id.ts";
import { indexEpisodes, type EpisodeIndex } from "./read-episodes.ts";
import { closedEarly } from "../schedule/closed-early.ts";
import { type LockOptions, RunLock } from "../disk/run-lock.ts";
import {
  type FolderManifest,
  type RunManifest,
  type RunPlace,
  claimManifest,
  writeManifest,
} from "./run-manifest.ts";
import { isRow } from "../../trajectory/violation.ts";
import { rolloutIdOfLine } from "./sample-line.ts";
import type { StartedAttempt } from "./same-groups.ts";
import { sortRows } from "./sort-rows.ts";
import { storageError } from "../disk/storage-error.ts";
import { droppedEvent, eventsFile, foundEvent, type RecordedGrouping } from "./episode-events.ts";
import { nextName, writeJsonAtomically } from "../disk/write-atomically.ts";

export type { EpisodeRow, EpisodeStory, FinishedEpisode } from "./episode-row.ts";
export type { FolderManifest, RunManifest } from "./run-manifest.ts";

/** Trainer formats that a run can write beside its own samples. */
export type SinkFormat = "slime";

/** How a run's folder is opened. */
export interface RunFolderOptions {
  /** A trainer's format to write beside the samples. */
  readonly format?: SinkFormat;
  /**
   * Plays the failed episodes of earlier starts again. They are taken out as the folder is opened: a start that does
   * not ask for the tasks of all of them has the others counted nowhere.
   */
  readonly retryFailed: boolean;
  /**
   * Whether nobody plays again what is found damaged, so that what is left of it is kept beside the files (see
   * `ReconcileOptions`). Default false.
   */
  readonly setsAside?: boolean;
  /** Whose inputs are kept in `recording.jsonl`. Default `all`. */
  readonly record?: RecordPolicy;
  /** Draws the `runId` of a new folder. Default: a random UUID. */
  readonly drawId?: () => string;
  readonly files?: Files;
  /** How the folder is locked, and what ends the wait for another machine's lock. */
  readonly lock?: Omit<LockOptions, "files">;
}

const summaryFile = "summary.json";

const slimeFile = "samples.slime.jsonl";

/**
 * The files of a run. One process at a time writes them (`RunLock`). An episode counts as finished
 * once its line is in `episodes.jsonl`; its samples are written and synced before that line, and
 * whatever samples a crash left without one are dropped when the folder is opened again. What is
 * damaged then is played again: an episode at a time, never the folder. Where nobody plays, what is left
 * of it is set aside.
 */
export class RunFolder implements AsyncDisposable {
  /** Where it is, absolute: whoever plays may change the working directory. */
  readonly dir: string;
  /** How it was named when it was opened: for messages. */
  readonly name: string;
  /** Episodes that earlier starts of this run finished. */
  readonly finished: readonly FinishedEpisode[];
  /** How the last start grouped attempts. */
  readonly grouping: RecordedGrouping;
  /** What was found on opening that people may want to know. */
  readonly notes: readonly string[];
  /** What whoever opened it says was found, in the words of this start. */
  readonly askedFound: unknown;
  readonly #files: Files;
  #manifest: FolderManifest;
  readonly #lock: RunLock;
  readonly #episodes: JsonlJournal;
  readonly #events: JsonlJournal;
  readonly #samples: JsonlJournal;
  readonly #format: SinkFormat | undefined;
  readonly #recordings: RecordingIndex;
  /** Failed episodes of earlier starts that are played again: their recordings are not gone on with. */
  readonly #retried: ReadonlySet<string>;
  /** Episodes that ended in earlier starts and of which the files lack something: they have not ended since. */
  readonly lost: ReadonlySet<string>;
  /** Whose inputs it keeps. */
  readonly record: RecordPolicy;
  readonly #finishedIds: ReadonlySet<string>;
  /**
   * Finished episodes of which nobody could replay what is recorded: an earlier start began to record them and
   * one that records nothing finished them; or it is of an attempt before the finished one.
   */
  readonly #unplayable: Set<string>;
  /** Whether what earlier starts were evaluated to may still be there. */
  #mayBeEvaluated = true;
  #isPlayed = false;
  #isClosing = false;
  /** What is written otherwise than by journals of the folder's own, while it is. */
  readonly #underWay = new Set<Promise<unknown>>();
  /** What was opened in it later, and is closed with it. */
  readonly #openedLater: AsyncDisposable[] = [];
  #finishedRecordings: Promise<RecordingIndex> | undefined;
  /** The recording, as a start that records nothing writes it. */
  #notesUnrecorded: Promise<JsonlJournal> | undefined;
  /** Where episodes were when one was last looked for in vain, or at all. */
  #index: Promise<EpisodeIndex> | undefined;

  private constructor(
    about: Pick<
      RunFolder,
      "askedFound" | "dir" | "name" | "manifest" | "finished" | "grouping" | "notes"
    >,
    open: {
      readonly files: Files;
      readonly lock: RunLock;
      readonly episodes: JsonlJournal;
      readonly events: JsonlJournal;
      readonly samples: JsonlJournal;
      readonly format: SinkFormat | undefined;
      readonly recordings: RecordingIndex;
      readonly retried: ReadonlySet<string>;
      readonly lost: ReadonlySet<string>;
      readonly record: RecordPolicy;
      readonly finishedIds: ReadonlySet<string>;
      readonly unplayable: Set<string>;
    },
  ) {
    this.dir = about.dir;
    this.name = about.name;
    this.#manifest = about.manifest;
    this.finished = about.finished;
    this.grouping = about.grouping;
    this.notes = about.notes;
    this.askedFound = about.askedFound;
    this.#files = open.files;
    this.#lock = open.lock;
    this.#episodes = open.episodes;
    this.#events = open.events;
    this.#samples = open.samples;
    this.#format = open.format;
    this.#recordings = open.recordings;
    this.#retried = open.retried;
    this.lost = open.lost;
    this.record = open.record;
    this.#finishedIds = open.finishedIds;
    this.#unplayable = open.unplayable;
  }

  /** What holds for the folder: that of the first start. */
  get manifest(): FolderManifest {
    return this.#manifest;
  }

  /**
   * Opens a run's folder: a new one, or one to resume.
   *
   * @throws UsageError where another process writes it (naming that), where it holds a run of another
   *   configuration or identity (naming what differs), or where it cannot be written.
   */
  static async open(
    name: string,
    manifest: RunManifest,
    options: RunFolderOptions,
  ): Promise<RunFolder> {
    const { files = diskFiles } = options;
    const dir = path.resolve(name);
    try {
      await files.makeFolder(dir);
      await files.syncFolder(path.dirname(dir));
    } catch (error) {
      throw storageError("create the run folder", name, error);
    }
    await assertOwnFolder({ dir, name }, files);
    const lock = await RunLock.take(dir, { ...options.lock, files });
    try {
      const now = options.lock?.now;
      return await RunFolder.#openLocked({ dir, name }, manifest, { ...options, files, lock, now });
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  static async #openLocked(
    { dir, name }: RunPlace,
    manifest: RunManifest,
    options: Omit<RunFolderOptions, "lock"> & {
      readonly files: Files;
      readonly lock: RunLock;
      readonly now?: (() => number) | undefined;
    },
  ): Promise<RunFolder> {
    const { files, lock, format, retryFailed, setsAside = false, record = "all" } = options;
    await removeUnfinished(files, dir);
    const { drawId } = options;
    const { now } = options;
    const place = { dir, name };
    const claimed = await claimManifest(place, manifest, { files, now, ...(drawId && { drawId }) });
    const found = await reconcile(dir, { files, retryFailed, setsAside });
    const { finished, dropped, laterAttempts, toBringBack, untold, grouping } = found;
    const notes = [...claimed.notes, ...found.notes];
    const finishedIds = new Set(finished.map(({ rolloutId }) => rolloutId));
    await endRecording(dir, files);
    const unrecorded = new Set<string>();
    const recordings = await indexRecordings(dir, {
      files,
      wants: (rolloutId) => !finishedIds.has(rolloutId) || laterAttempts.has(rolloutId),
      onLine: ({ rolloutId, isUnrecorded }) => {
        if (isUnrecorded && finishedIds.has(rolloutId)) unrecorded.add(rolloutId);
        // Its row was lost, and what went on with it recorded the rest.
        else unrecorded.delete(rolloutId);
      },
    });
    const isOvertaken = ([rolloutId, attempt]: readonly [string, number]): boolean =>
      (recordings.get(rolloutId)?.attempt ?? attempt) < attempt;
    const overtaken = [...laterAttempts].filter(isOvertaken).map(([rolloutId]) => rolloutId);
    const names = [samplesFile, episodesFile, eventsFile] as const;
    const journals = await openJournals(dir, names, { files, guard: () => lock.confirm() });
    const folder = new RunFolder(
      {
        dir,
        name,
        finished,
        grouping,
        notes,
        manifest: claimed.manifest,
        askedFound: manifest.found,
      },
      {
        files,
        lock,
        format,
        recordings,
        record,
        finishedIds,
        unplayable: new Set([...overtaken, ...unrecorded]),
        retried: found.retried,
        lost: toBringBack,
        samples: journals[samplesFile],
        episodes: journals[episodesFile],
        events: journals[eventsFile],
      },
    );
    const atMs = (now ?? Date.now)();
    await folder.#tellFound([
      // What was told of them holds no longer; what is played again may be another story.
      ...(dropped.length > 0 ? [droppedEvent(dropped, { toBringBack, atMs })] : []),
      // A crash came between their lines and their events.
      ...untold.map((episode) => foundEvent(episode, atMs)),
    ]);
    return folder;
  }

  async #tellFound(events: readonly object[]): Promise<void> {
    if (events.length === 0) return;
    try {
      const lines: EncodedLine[] = [];
      for (const event of events) lines.push(await encodeLine(event));
      await this.#events.appendLines(lines);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * To be called by whoever plays a run in it: what this holds of earlier starts is that of its opening.
   *
   * @throws UsageError where a run was played in it since it was opened.
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
   * Adds to `run.json` what it leaves out of what was found, as a program's own manifest may: what is there stays,
   * unless it is `seen` to be otherwise, or `undefined` there.
   *
   * @throws UsageError where the disk refuses, or the folder is another process's by now.
   */
  async completeFound(known: RunManifest["found"], seen: object = {}): Promise<void> {
    const { found }: { readonly found: unknown } = this.#manifest;
    const told = isRow(found) ? found : {};
    const lacking = Object.entries(known).filter(([name]) => told[name] === undefined);
    const other = Object.entries(seen).filter(([name, value]) => {
      return !isDeepStrictEqual(told[name], value);
    });
    const added = Object.fromEntries([...lacking, ...other]);
    if (Object.keys(added).length > 0) await this.noteFound(added);
  }

  /**
   * Notes in `run.json` what was found, in the place of what is there of the same names; what is `undefined` is not
   * said any more.
   *
   * @throws UsageError where the disk refuses, or the folder is another process's by now.
   */
  async noteFound(known: RunManifest["found"]): Promise<void> {
    const { found }: { readonly found: unknown } = this.#manifest;
    const all = withoutUndefined({ ...(isRow(found) && found), ...known });
    const manifest = { ...this.#manifest, found: all };
    await this.#whileHeld(
      async () => await writeManifest(this.dir, manifest, { files: this.#files }),
    );
    this.#manifest = manifest;
  }

  /**
   * The inputs of an episode that an earlier start began; `undefined` where nothing is recorded of it.
   */
  async recordingOf(rolloutId: string): Promise<RecordedAttempt | undefined> {
    const isFinished = this.#finishedIds.has(rolloutId);
    const places = isFinished ? await this.#indexFinished() : this.#recordings;
    const place = places.get(rolloutId);
    if (place === undefined) return undefined;
    const { runId } = this.manifest;
    const about = { files: this.#files, rolloutId, ranges: place.ranges, runId };
    const recorded = await readRecording(this.dir, about);
    if (recorded === undefined) return undefined;
    if (this.#retried.has(rolloutId)) return { ...recorded, hasEnded: true };
    // Its lines were lost after it ended: its inputs bring them back as they were.
    return this.lost.has(rolloutId) ? { ...recorded, hasEnded: false } : recorded;
  }

  /**
   * Whether earlier starts sampled anything that stays: in finished episodes, or in attempts that are gone on with. What
   * forks share with what they part from was sampled there.
   */
  async holdsSampled(): Promise<boolean> {
    if (this.finished.some(hasOwnTokens)) return true;
    for (const [rolloutId, place] of this.#recordings) {
      if (!place.isSampled) continue;
      const recorded = await this.recordingOf(rolloutId);
      if (recorded?.hasEnded === false && holdsOwnTurn(recorded)) return true;
    }
    return false;
  }

  /** Few ask for these: they are looked for when one is. */
  async #indexFinished(): Promise<RecordingIndex> {
    this.#finishedRecordings ??= indexRecordings(this.dir, {
      files: this.#files,
      wants: (rolloutId) => this.#finishedIds.has(rolloutId),
    });
    return await this.#finishedRecordings;
  }

  /**
   * Finished episodes as they are on the disk (see `EpisodeIndex`): all that are asked for.
   *
   * @throws UsageError where one is not there, or the disk refuses.
   */
  async readEpisodes(wanted: ReadonlySet<string>): Promise<readonly Episode[]> {
    const known = this.#index;
    const found = (await (await known)?.read(wanted)) ?? [];
    if (found.length === wanted.size) return found;
    // Some were written since.
    if (this.#index === known) this.#index = indexEpisodes(this.dir, this.#files);
    const all = await (await this.#index!).read(wanted);
    if (all.length === wanted.size) return all;
    const there = new Set(all.map(({ rolloutId }) => rolloutId));
    const lacking = [...wanted].find((rolloutId) => !there.has(rolloutId));
    throw new UsageError(
      `Cannot read ${lacking} back from ${this.dir}: it was finished there, and its line or its rows are no ` +
        "longer in the files, as if another program had changed them; start again, and it is played again",
    );
  }

  /**
   * The attempts that earlier starts began and did not finish, as far as they were recorded, of groups of which none is
   * finished: of which task any other group is, its finished attempts say.
   */
  async readBegun(): Promise<readonly StartedAttempt[]> {
    const { runId } = this.manifest;
    const known = new Set(this.finished.map(({ rolloutId }) => groupIdOf(rolloutId)));
    const begins = await readBegins(this.dir, {
      files: this.#files,
      index: this.#recordings,
      runId,
      wants: (rolloutId) => !known.has(groupIdOf(rolloutId)),
    });
    // Nothing says that what they name is whole.
    return begins.filter(({ groupIndex }) => Number.isSafeInteger(groupIndex) && groupIndex >= 0);
  }

  /** What earlier starts said of groups. */
  async readGroups(): Promise<RecordedGroups> {
    return await readRecordedGroups(this.dir, { files: this.#files, runId: this.manifest.runId });
  }

  /** Opens the recording for writing; `undefined` where nothing is to be recorded. */
  async openRecording(
    options: Omit<RecordingOptions, "journal">,
  ): Promise<(RecordingJournal & AsyncDisposable) | undefined> {
    if (this.record === "none") return undefined;
    return await this.#whileHeld(async () => {
      const journal = await this.#openJournal(recordingFile);
      const recording = new RecordingJournal({ ...options, journal });
      const closable = Object.assign(recording, {
        [Symbol.asyncDispose]: async () => {
          await recording.flush();
          await journal[Symbol.asyncDispose]();
        },
      });
      this.#openedLater.push(closable);
      return closable;
    });
  }

  /**
   * Opens one more of the files that grow by lines. It is written while the folder is this process's, and closed
   * with the folder.
   *
   * @throws UsageError where it cannot be opened, or the folder was closed.
   */
  async openJournal(name: FolderJournal): Promise<JsonlJournal> {
    return await this.#whileHeld(async () => {
      const journal = await this.#openJournal(name);
      this.#openedLater.push(journal);
      return journal;
    });
  }

  async #openJournal(name: FolderJournal): Promise<JsonlJournal> {
    const guard = (): Promise<void> => this.#lock.confirm();
    return await JsonlJournal.open(path.join(this.dir, name), { files: this.#files, guard });
  }

  /**
   * Does what is more than a line that is added to a file: the folder is not given back before that is done.
   *
   * @throws UsageError where the folder was closed, or is another process's by now.
   */
  async #whileHeld<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isClosing) throw closedEarly(this.dir);
    const working = this.#lock.confirm().then(work);
    this.#underWay.add(working);
    try {
      return await working;
    } finally {
      this.#underWay.delete(working);
    }
  }

  /** Takes out of the recording what is not to be kept; `ended` says how a rollout ended, if it did. */
  async pruneRecording(ended: (rolloutId: string) => "failed" | "other" | undefined) {
    const unplayable = this.#unplayable;
    // What earlier starts recorded to its end is kept by one that records nothing.
    const keepsFailedAlone = this.record === "failed";
    const drops = (rolloutId: string): boolean =>
      unplayable.has(rolloutId) || (keepsFailedAlone && ended(rolloutId) === "other");
    await this.#whileHeld(async () => {
      if (!keepsFailedAlone && unplayable.size === 0) return;
      await pruneRecordings(this.dir, { files: this.#files, drops });
    });
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
   * @throws UsageError where the disk refuses it, or the folder is another process's by now.
   */
  async writeEpisode(episode: Episode): Promise<string> {
    const samples: EncodedLine[] = [];
    for (const sample of episodeSamples(episode))
      samples.push(await encodeRow(sample, acquireBytes));
    if (samples.length > 0) await this.#samples.appendLines(samples);
    await this.#noteUnrecorded(episode);
    const { segments: _written, ...story } = episode;
    const row: EpisodeRow = { ...story, sampleHashes: samples.map(({ hash }) => hash) };
    const line = await encodeLine(row, acquireBytes);
    await this.#episodes.appendLines([line]);
    return line.hash;
  }

  /** Says in the recording of an episode that earlier starts began that this one, which records nothing, ended it. */
  async #noteUnrecorded({ rolloutId }: Episode): Promise<void> {
    const place = this.#recordings.get(rolloutId);
    if (this.record !== "none" || place === undefined) return;
    const { attempt } = place;
    this.#notesUnrecorded ??= this.openJournal(recordingFile);
    const journal = await this.#notesUnrecorded;
    await journal.append(unrecordedEnd({ rolloutId, attempt }));
    this.#unplayable.add(rolloutId);
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
    const rankOf = (line: Buffer): number =>
      ranks.get(rolloutIdOfLine(line) ?? "") ?? rolloutIds.length;
    await this.#whileHeld(async () => {
      await this.#samples[Symbol.asyncDispose]();
      this.#index = undefined;
      await sortRows(this.#samples.path, rankOf, { files: this.#files });
    });
  }

  /**
   * Makes the slime file, where one is asked for, out of the episodes that are finished: those of
   * groups that are whole.
   *
   * @returns what it holds; `undefined` where none is asked for.
   */
  async writeSlime(
    attempts: readonly SlimeAttempt[],
    choice: SlimeChoice = {},
  ): Promise<SlimeSummary | undefined> {
    const { slimeFile: file } = this;
    if (file === undefined) return undefined;
    const sources = { episodesFile: this.#episodes.path, samplesFile: this.#samples.path };
    const options = { ...sources, ...choice, files: this.#files };
    return await this.#whileHeld(async () => await writeSlimeFile(file, attempts, options));
  }

  /**
   * Takes back what was said of the whole at an earlier end of the run, its sums, slime's rows and what it was
   * evaluated to: the run goes on, and they hold no longer.
   */
  async takeBackEnd(): Promise<void> {
    await this.takeBackSums();
    await this.takeBackEvaluation();
  }

  /** Takes back the sums and slime's rows of an earlier end. */
  async takeBackSums(): Promise<void> {
    await this.#whileHeld(async () => await this.#removeAll([summaryFile, slimeFile]));
  }

  /**
   * Takes back, once, what earlier starts were evaluated to, if only to nothing. Where what is there is no evaluation
   * of ours, the files of these names are somebody else's, and stay.
   */
  async takeBackEvaluation(): Promise<void> {
    if (!this.#mayBeEvaluated) return;
    const { evaluation, ...others } = evaluationFiles;
    const file = path.join(this.dir, evaluation);
    await this.#whileHeld(async () => {
      let text: string | undefined;
      try {
        text = await readText(this.#files, file);
      } catch (error) {
        throw storageError("read", file, error);
      }
      // The one that tells of the others goes last.
      if (isEvaluation(text)) await this.#removeAll([...Object.values(others), evaluation]);
    });
    this.#mayBeEvaluated = false;
  }

  async #removeAll(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const file = path.join(this.dir, name);
      try {
        await this.#files.remove(file);
      } catch (error) {
        throw storageError("write", file, error);
      }
    }
  }

  async writeSummary(summary: object): Promise<void> {
    const file = path.join(this.dir, summaryFile);
    const files = this.#files;
    await this.#whileHeld(async () => await writeJsonAtomically(file, summary, { files }));
  }

  /**
   * Waits for what is being written, closes the files, and gives the folder back. To be called when its run has
   * ended: one that still plays is told that the folder was closed, and writes nothing more.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    await using _lock = this.#lock;
    await using _events = this.#events;
    await using _episodes = this.#episodes;
    await using _samples = this.#samples;
    await Promise.allSettled(this.#underWay);
    for (const opened of this.#openedLater) await opened[Symbol.asyncDispose]();
  }
}

function hasOwnTokens({ counts, shared }: FinishedEpisode): boolean {
  return counts.sampledTokenCount > 0 && counts.turnCount > (shared?.turnCount ?? 0);
}

function holdsOwnTurn({ begin, inputs }: RecordedAttempt): boolean {
  const shared = inputsBefore(inputs, begin.forkedFrom?.turnIndex ?? 0);
  return shared !== undefined && inputs.inputs.slice(shared.inputs.length).some(isSampled);
}

function isSampled(input: Input): boolean {
  return input.type === "generation" && "value" in input.outcome;
}

/** Opens all of them or, where one cannot be opened, none. */
async function openJournals<Name extends FolderJournal>(
  dir: string,
  names: readonly Name[],
  options: JournalOptions,
): Promise<Readonly<Record<Name, JsonlJournal>>> {
  const journals: [Name, JsonlJournal][] = [];
  try {
    for (const name of names) {
      journals.push([name, await JsonlJournal.open(path.join(dir, name), options)]);
    }
    return Object.fromEntries(journals) as Record<Name, JsonlJournal>;
  } catch (error) {
    await Promise.allSettled(journals.map(([, journal]) => journal[Symbol.asyncDispose]()));
    throw error;
  }
}

/** Removes what a crash left of files that were to be replaced. */
async function removeUnfinished(files: Files, dir: string): Promise<void> {
  const names = ["run.json", summaryFile, episodesFile, samplesFile, slimeFile, recordingFile];
  for (const name of names) {
    const file = path.join(dir, name);
    try {
      await files.remove(nextName(await files.realPath(file)));
    } catch (error) {
      throw storageError("write", file, error);
    }
  }
}
