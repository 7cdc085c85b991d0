import type { Episode } from "../../episode/episode.ts";
import { inputsBefore, isChatTurn, type Input } from "../../episode/inputs/input.ts";
import type { JsonlJournal } from "../disk/jsonl-journal.ts";
import { RecordingJournal, type RecordingOptions } from "../recording/recording-journal.ts";
import { recordingFile, unrecordedEnd } from "../recording/recording-line.ts";
import {
  indexRecordings,
  pruneRecordings,
  readFirstLines,
  readRecording,
  type RecordedAttempt,
  type RecordingIndex,
  type RecordPolicy,
} from "../recording/read-recording.ts";
import { groupIdOf } from "../schedule/group-id.ts";
import type { LockedFolder } from "./locked-folder.ts";
import type { StartedAttempt } from "./same-groups.ts";

/** The state of a folder's recordings when the folder was opened. */
export interface FoundRecordings {
  /** Recordings of unfinished rollouts, and of finished ones that were played more than once. */
  readonly index: RecordingIndex;
  /** The ids of finished rollouts. */
  readonly finishedIds: ReadonlySet<string>;
  /** Failed rollouts that are played again. Their earlier recordings are not resumed. */
  readonly retried: ReadonlySet<string>;
  /** Rollouts that ended, but lack their line or rows. Their recordings restore them. */
  readonly lost: ReadonlySet<string>;
  /**
   * Finished rollouts with a recording that cannot be replayed: a start that records nothing finished the attempt, or
   * the recording is of an earlier play than the finished one.
   */
  readonly unplayable: ReadonlySet<string>;
}

/** The folder, its files and the recordings that were found in it. */
export interface FolderRecordingsOptions extends FoundRecordings {
  readonly record: RecordPolicy;
  readonly runId: string;
}

/** The recording of a run's folder, `recording.jsonl`: reads what earlier starts recorded, and opens it for writing. */
export class FolderRecordings {
  readonly #folder: LockedFolder;
  readonly #options: FolderRecordingsOptions;
  readonly #unplayable: Set<string>;
  #finished: Promise<RecordingIndex> | undefined;
  /** The journal in which a start that records nothing marks attempts as unrecorded. */
  #markJournal: Promise<JsonlJournal> | undefined;

  constructor(folder: LockedFolder, options: FolderRecordingsOptions) {
    this.#folder = folder;
    this.#options = options;
    this.#unplayable = new Set(options.unplayable);
  }

  /**
   * Reads the recorded inputs of a rollout's latest attempt. Returns `undefined` if an earlier
   * start recorded none.
   */
  async read(rolloutId: string): Promise<RecordedAttempt | undefined> {
    const { finishedIds, index, lost, retried, runId } = this.#options;
    const places = finishedIds.has(rolloutId) ? await this.#indexFinished() : index;
    const place = places.get(rolloutId);
    if (place === undefined) return undefined;
    const { dir, files } = this.#folder;
    const recorded = await readRecording(dir, { files, rolloutId, ranges: place.ranges, runId });
    if (recorded === undefined) return undefined;
    if (retried.has(rolloutId)) return { ...recorded, hasEnded: true };
    // The attempt's lines were lost after it ended: its recording restores them unchanged.
    return lost.has(rolloutId) ? { ...recorded, hasEnded: false } : recorded;
  }

  /** Indexes the recordings of finished rollouts when the first of them is read. */
  async #indexFinished(): Promise<RecordingIndex> {
    this.#finished ??= indexRecordings(this.#folder.dir, {
      files: this.#folder.files,
      wants: (rolloutId) => this.#options.finishedIds.has(rolloutId),
    });
    return await this.#finished;
  }

  /**
   * True if an unfinished attempt that can be resumed has a sampled turn of its own, apart from shared turns of a fork.
   */
  async holdsResumableTurn(): Promise<boolean> {
    for (const [rolloutId, place] of this.#options.index) {
      if (!place.isSampled) continue;
      const recorded = await this.read(rolloutId);
      if (recorded?.hasEnded === false && holdsOwnTurn(recorded)) return true;
    }
    return false;
  }

  /**
   * Reads the recorded attempts that earlier starts did not finish, of groups without a finished attempt. The finished
   * attempts of any other group name its task.
   */
  async readStarted(): Promise<readonly StartedAttempt[]> {
    const { finishedIds, index, runId } = this.#options;
    const known = new Set([...finishedIds].map(groupIdOf));
    const started = await readFirstLines(this.#folder.dir, {
      files: this.#folder.files,
      index,
      runId,
      wants: (rolloutId) => !known.has(groupIdOf(rolloutId)),
    });
    // A line's JSON is read without checking the types of its members.
    return started.filter(({ groupIndex }) => Number.isSafeInteger(groupIndex) && groupIndex >= 0);
  }

  /** Opens the recording for writing; returns `undefined` if this start records nothing. */
  async open(
    options: Omit<RecordingOptions, "journal">,
  ): Promise<(RecordingJournal & AsyncDisposable) | undefined> {
    if (this.#options.record === "none") return undefined;
    return await this.#folder.openJournal(recordingFile, (journal) => {
      const recording = new RecordingJournal({ ...options, journal });
      return Object.assign(recording, {
        [Symbol.asyncDispose]: async () => {
          await recording.flush();
          await journal[Symbol.asyncDispose]();
        },
      });
    });
  }

  /** Marks an attempt that an earlier start recorded in part, and that ends in this start, which records nothing. */
  async markUnrecorded({ rolloutId }: Episode): Promise<void> {
    const { index, record } = this.#options;
    const place = index.get(rolloutId);
    if (record !== "none" || place === undefined) return;
    this.#markJournal ??= this.#folder.openJournal(recordingFile, (journal) => journal);
    const journal = await this.#markJournal;
    await journal.append(unrecordedEnd({ rolloutId, attempt: place.attempt }));
    this.#unplayable.add(rolloutId);
  }

  /**
   * Removes recordings that cannot be replayed or that the record policy does not keep.
   *
   * @param endOf - Returns how a rollout ended; `undefined` if it did not.
   */
  async prune(endOf: (rolloutId: string) => "failed" | "other" | undefined): Promise<void> {
    const unplayable = this.#unplayable;
    // Under `none`, complete recordings of earlier starts are kept.
    const keepsFailedOnly = this.#options.record === "failed";
    const drops = (rolloutId: string): boolean =>
      unplayable.has(rolloutId) || (keepsFailedOnly && endOf(rolloutId) === "other");
    await this.#folder.whileLocked(async () => {
      if (!keepsFailedOnly && unplayable.size === 0) return;
      await pruneRecordings(this.#folder.dir, { files: this.#folder.files, drops });
    });
  }
}

function holdsOwnTurn({ begin, inputs }: RecordedAttempt): boolean {
  // Turns that an engine returned as messages are never shared.
  if (inputs.inputs.some(isChatTurn)) return true;
  const shared = inputsBefore(inputs, begin.forkedFrom?.turnIndex ?? 0);
  return shared !== undefined && inputs.inputs.slice(shared.inputs.length).some(isSampled);
}

function isSampled(input: Input): boolean {
  return input.type === "generation" && "value" in input.outcome;
}
