import path from "node:path";
import { type FinishedEpisode, parseJson } from "./episode-row.ts";
import type { Files } from "../disk/files.ts";
import { scanLines } from "../disk/line-ranges.ts";
import { storageError } from "../disk/storage-error.ts";

/** The file that says what happened when. */
export const eventsFile = "events.jsonl";

/** What was told of an episode when it ended. */
interface EpisodeEndEvent {
  readonly rolloutId: string;
  /** The hash of its line (see `hashRow()`). */
  readonly hash: string;
  readonly isFailed: boolean;
}

/** The grouping of a start's attempts, as far as the start noted it. */
export interface RecordedGrouping {
  /** Scored attempts that make a group whole. At least 1. */
  readonly size?: number;
  /** Attempts that are begun at each task, which seeds and places count by. `size` or more. */
  readonly begun?: number;
  /** Where attempts branch. */
  readonly branchAt?: readonly number[];
}

/** The episodes that events tell of, by their rollout's id. Takes note of one event after the other. */
export class EpisodeEvents {
  /** Those that were not dropped since then. */
  readonly episodes = new Map<string, EpisodeEndEvent>();
  /** Those that were dropped because their lines were lost, and have not ended since then. */
  readonly lost = new Map<string, EpisodeEndEvent>();
  /** How the last start grouped attempts. */
  grouping: RecordedGrouping = {};

  note(event: Readonly<Record<string, unknown>>): void {
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
    const told = this.episodes.get(id) ?? this.lost.get(id);
    this.episodes.delete(id);
    this.lost.delete(id);
    if (isLost && told !== undefined) this.lost.set(id, told);
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

/** The event that tells that a start began to play. */
export const startedType = "run-started";
const finishedType = "episode-finished";
/** The event that tells of episodes which are played again. */
export const droppedType = "episodes-dropped";

/** A finished episode that no event tells of. */
export interface EpisodeWithoutEvent extends FinishedEpisode {
  /** The hash of its line (see `hashRow()`). */
  readonly hash: string;
}

/** Tells afterwards of an episode that a crash kept from being told of as it ended. */
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
 * Says that episodes which were told of are to be played again.
 *
 * @param about - `toBringBack` has those of them whose lines were lost, and may have others: what is recorded of them
 *   brings them back as they were, whichever start comes to play them.
 */
export function droppedEvent(
  rolloutIds: readonly string[],
  { toBringBack, atMs }: { readonly toBringBack: ReadonlySet<string>; readonly atMs: number },
) {
  const lostIds = rolloutIds.filter((id) => toBringBack.has(id));
  return { type: droppedType, atMs, rolloutIds, ...(lostIds.length > 0 && { lostIds }) };
}

/**
 * Reads which episodes were told of.
 *
 * @throws UsageError where the disk refuses.
 */
export async function readEpisodeEvents(files: Files, dir: string): Promise<EpisodeEvents> {
  const file = path.join(dir, eventsFile);
  const told = new EpisodeEvents();
  try {
    await scanLines(files, file, ({ bytes }) => {
      if (!bytes.includes('"episode') && !bytes.includes(`"${startedType}"`)) return;
      const event = parseJson(bytes);
      if (typeof event === "object" && event !== null) told.note({ ...event });
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return told;
}
