import path from "node:path";
import { type FinishedEpisode, parseJson } from "./episode-row.ts";
import type { Files } from "../disk/files.ts";
import { scanLines } from "../disk/line-ranges.ts";
import { storageError } from "../disk/storage-error.ts";

/** The journal of a run's events. */
export const eventsFile = "events.jsonl";

/** The end of an episode, as its event names it. */
export interface EpisodeEndEvent {
  readonly rolloutId: string;
  /** The hash of the episode's line (see `hashRow()`). */
  readonly hash: string;
  readonly isFailed: boolean;
}

/** The number of attempts and branches that a start recorded. The field names are those of the event. */
export interface RecordedGrouping {
  /** The number of scored attempts that complete a group. At least 1. */
  readonly size?: number;
  /**
   * The number of attempts that are started at each task, `size` or more. Seeds and rollout indexes are computed from
   * this number.
   */
  readonly begun?: number;
  /** The turns at which attempts branch. */
  readonly branchAt?: readonly number[];
}

/** The ends of episodes in `events.jsonl`, by rollout id. */
export class EpisodeEvents {
  /** Finished episodes that were not dropped later. */
  readonly episodes = new Map<string, EpisodeEndEvent>();
  /** Episodes that were dropped because their lines were lost, and that have not ended again. */
  readonly lost = new Map<string, EpisodeEndEvent>();
  /** The grouping that the last start recorded. */
  grouping: RecordedGrouping = {};

  add(event: Readonly<Record<string, unknown>>): void {
    const { type, rolloutId, rolloutIds, lostIds, episodeHash, outcome } = event;
    if (type === startedType) {
      this.grouping = { ...this.grouping, ...readGrouping(event) };
    } else if (type === finishedType && typeof episodeHash === "string") {
      if (typeof rolloutId !== "string") return;
      const isFailed = outcome === "failed";
      this.episodes.set(rolloutId, { rolloutId, hash: episodeHash, isFailed });
      this.lost.delete(rolloutId);
    } else if (type === droppedType && Array.isArray(rolloutIds)) {
      const lost = new Set(Array.isArray(lostIds) ? (lostIds as readonly string[]) : []);
      for (const id of rolloutIds as readonly string[]) this.#drop(id, lost.has(id));
    }
  }

  #drop(id: string, isLost: boolean): void {
    const end = this.episodes.get(id) ?? this.lost.get(id);
    this.episodes.delete(id);
    this.lost.delete(id);
    if (isLost && end !== undefined) this.lost.set(id, end);
  }
}

function readGrouping({
  size,
  begun,
  branchAt,
}: Readonly<Record<string, unknown>>): RecordedGrouping {
  return {
    ...(isAttemptCount(size) && { size }),
    ...(isAttemptCount(begun) && { begun }),
    ...(Array.isArray(branchAt) && { branchAt: branchAt as readonly number[] }),
  };
}

function isAttemptCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

/** The type of the event at the start of a process. */
export const startedType = "run-started";
const finishedType = "episode-finished";
/** The type of the event that names episodes which are played again. */
export const droppedType = "episodes-dropped";

/** A finished episode that has no event in `events.jsonl`, because a process crashed before it wrote the event. */
export interface EpisodeWithoutEvent extends FinishedEpisode {
  /** The hash of the episode's line (see `hashRow()`). */
  readonly hash: string;
}

/** Makes the missing event of a finished episode. */
export function foundEvent(
  { rolloutId, outcome, stopReason, reward, failure, hash }: EpisodeWithoutEvent,
  atMs: number,
) {
  return {
    type: finishedType,
    atMs,
    rolloutId,
    outcome,
    stopReason,
    ...(reward !== undefined && { reward }),
    ...(failure !== undefined && { failure }),
    isFoundLater: true,
    episodeHash: hash,
  };
}

/**
 * Makes the event for episodes that are played again.
 *
 * @param about - `toRestore` has the ids of episodes whose lines were lost, possibly of others too: their recordings
 *   restore them.
 */
export function droppedEvent(
  rolloutIds: readonly string[],
  { toRestore, atMs }: { readonly toRestore: ReadonlySet<string>; readonly atMs: number },
) {
  const lostIds = rolloutIds.filter((id) => toRestore.has(id));
  return { type: droppedType, atMs, rolloutIds, ...(lostIds.length > 0 && { lostIds }) };
}

/**
 * Reads the ends of episodes in `events.jsonl`.
 *
 * @throws UsageError if the disk fails.
 */
export async function readEpisodeEvents(files: Files, dir: string): Promise<EpisodeEvents> {
  const file = path.join(dir, eventsFile);
  const events = new EpisodeEvents();
  try {
    await scanLines(files, file, ({ bytes }) => {
      if (!bytes.includes('"episode') && !bytes.includes(`"${startedType}"`)) return;
      const event = parseJson(bytes);
      if (typeof event === "object" && event !== null) events.add({ ...event });
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return events;
}
