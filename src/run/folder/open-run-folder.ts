import path from "node:path";
import { diskFiles, type Files } from "../disk/files.ts";
import { JsonlJournal, type JournalOptions } from "../disk/jsonl-journal.ts";
import { RunLock } from "../disk/run-lock.ts";
import { type LockOptions } from "../disk/lock-options.ts";
import { storageError } from "../disk/storage-error.ts";
import { nextName } from "../disk/write-atomically.ts";
import { endRecording, indexRecordings } from "../recording/read-recording.ts";
import type { RecordPolicy } from "../recording/read-recording.ts";
import { recordingFile } from "../recording/recording-line.ts";
import { assertOwnFolder } from "./assert-own-folder.ts";
import { droppedEvent, eventsFile, foundEvent, type RecordedGrouping } from "./episode-events.ts";
import type { FinishedEpisode } from "./episode-row.ts";
import type { FolderJournal } from "./folder-journals.ts";
import type { FoundRecordings } from "./folder-recordings.ts";
import { slimeFile, summaryFile } from "./folder-results.ts";
import { LockedFolder } from "./locked-folder.ts";
import { assertUnpacked } from "../gzip/packed-run.ts";
import { reconcile, type Reconciliation } from "./reconcile.ts";
import { episodesFile, samplesFile } from "./scan-claims.ts";
import { claimManifest } from "./claim-manifest.ts";
import { manifestFile, type FolderManifest, type RunManifest } from "./run-manifest.ts";

/** Trainer formats that a run can write beside its own samples. */
export type SinkFormat = "slime";

/** The settings with which a run's folder is opened. */
export interface RunFolderOptions {
  /** A trainer's format to write beside the samples. */
  readonly format?: SinkFormat;
  /**
   * True to play the failed episodes of earlier starts again. Opening the folder removes these episodes from its files.
   * If such a failure is not played again, it is counted nowhere.
   */
  readonly retryFailed: boolean;
  /**
   * True to keep damaged lines in files beside the folder's own, because this start does not play their episodes again
   * (see `ReconcileOptions`). Default false.
   */
  readonly setsAside?: boolean;
  /** The episodes whose inputs are kept in `recording.jsonl`. Default `all`. */
  readonly record?: RecordPolicy;
  /** Draws the `runId` of a new folder. Default: a random UUID. */
  readonly drawId?: () => string;
  readonly files?: Files;
  /** Options of the lock, with a signal that ends the wait for another machine. */
  readonly lock?: Omit<LockOptions, "files">;
}

/** The journals that stay open while a folder is open. */
export interface BaseJournals {
  readonly samples: JsonlJournal;
  readonly episodes: JsonlJournal;
  readonly events: JsonlJournal;
}

/** A run's folder that is locked and reconciled, with its journals open. */
export interface OpenedFolder {
  readonly folder: LockedFolder;
  readonly journals: BaseJournals;
  readonly manifest: FolderManifest;
  readonly finished: readonly FinishedEpisode[];
  readonly grouping: RecordedGrouping;
  readonly recordings: FoundRecordings;
  /** Repairs and damage that the user should read about. */
  readonly notes: readonly string[];
  /** Events that are missing in `events.jsonl`. Write them before anything else. */
  readonly missingEvents: readonly object[];
}

/**
 * Creates or opens a run's folder, locks it, and repairs what a crash left in its files.
 *
 * @throws UsageError if another process writes the folder, if it holds another run, or if the disk fails.
 */
export async function openRunFolder(
  name: string,
  manifest: RunManifest,
  options: RunFolderOptions,
): Promise<OpenedFolder> {
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
    const folder = new LockedFolder(dir, { files, lock });
    return await openLocked(folder, manifest, { ...options, name, guard: () => lock.confirm() });
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}

async function openLocked(
  folder: LockedFolder,
  requested: RunManifest,
  options: RunFolderOptions & { readonly name: string; readonly guard: () => Promise<void> },
): Promise<OpenedFolder> {
  const { dir, files } = folder;
  const { drawId, guard, name, retryFailed, setsAside = false } = options;
  const now = options.lock?.now;
  await assertUnpacked(files, { dir, name });
  await removeUnfinished(files, dir);
  const claimed = await claimManifest({ dir, name }, requested, {
    files,
    now,
    ...(drawId && { drawId }),
  });
  const found = await reconcile(dir, { files, retryFailed, setsAside });
  const recordings = await findRecordings(folder, found);
  const names = [samplesFile, episodesFile, eventsFile] as const;
  const journals = await openJournals(dir, names, { files, guard });
  const atMs = (now ?? Date.now)();
  return {
    folder,
    manifest: claimed.manifest,
    finished: found.finished,
    grouping: found.grouping,
    notes: [...claimed.notes, ...found.notes],
    recordings,
    journals: {
      samples: journals[samplesFile],
      episodes: journals[episodesFile],
      events: journals[eventsFile],
    },
    missingEvents: [
      // Earlier events of these rollouts are out of date: they may end differently when they are played again.
      ...(found.dropped.length > 0
        ? [droppedEvent(found.dropped, { toRestore: found.toRestore, atMs })]
        : []),
      // A crash came between an episode's line and its event.
      ...found.withoutEvent.map((episode) => foundEvent(episode, atMs)),
    ],
  };
}

/** Repairs the end of the recording and finds the recordings that can be resumed or replayed. */
async function findRecordings(
  { dir, files }: LockedFolder,
  { finished, laterAttempts, retried, toRestore }: Reconciliation,
): Promise<FoundRecordings> {
  await endRecording(dir, files);
  const finishedIds = new Set(finished.map(({ rolloutId }) => rolloutId));
  const unrecorded = new Set<string>();
  const index = await indexRecordings(dir, {
    files,
    wants: (rolloutId) => !finishedIds.has(rolloutId) || laterAttempts.has(rolloutId),
    onLine: ({ rolloutId, isUnrecorded }) => {
      if (isUnrecorded && finishedIds.has(rolloutId)) unrecorded.add(rolloutId);
      // The episode's row was lost, and a later start resumed the attempt and recorded the rest.
      else unrecorded.delete(rolloutId);
    },
  });
  const isOutdated = ([rolloutId, attempt]: readonly [string, number]): boolean =>
    (index.get(rolloutId)?.attempt ?? attempt) < attempt;
  const outdated = [...laterAttempts].filter(isOutdated).map(([rolloutId]) => rolloutId);
  const unplayable = new Set([...outdated, ...unrecorded]);
  return { index, finishedIds, retried, lost: toRestore, unplayable };
}

/** Opens all of the journals, or none if one of them cannot be opened. */
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

/** Removes temporary files: a crash left them before they replaced a file of the run. */
async function removeUnfinished(files: Files, dir: string): Promise<void> {
  const names = [manifestFile, summaryFile, episodesFile, samplesFile, slimeFile, recordingFile];
  for (const name of names) {
    const file = path.join(dir, name);
    try {
      await files.remove(nextName(await files.realPath(file)));
    } catch (error) {
      throw storageError("write", file, error);
    }
  }
}
