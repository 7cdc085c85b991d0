import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment } from "../../episode/episode-setup.ts";
import type { FinishedEpisode } from "../folder/episode-row.ts";
import type { Task } from "../../task.ts";
import type { SharedPrefix } from "../attempt/shared-prefix.ts";
import type { Fork } from "./task-source.ts";

/** A group with attempts that are to be played, or are being played. */
export interface OpenGroup {
  readonly groupId: string;
  readonly groupIndex: number;
  readonly task: Task;
  /** The number of attempts that are started at the group's task. */
  readonly started: number;
  /** Attempts that earlier starts finished. */
  readonly earlier: readonly FinishedEpisode[];
  /** Attempts that this start finished. */
  readonly episodes: Episode[];
  /** Jobs that wait for the group's first attempt, because they branch from it. */
  readonly waiting: AttemptJob[];
  /** The first attempt, if others branch from it and this start knows how it ended. */
  sharedPrefix?: SharedPrefix;
  /** Aborts when the group needs no more attempts. */
  readonly cancel: AbortController;
  /** Rollouts that ended in earlier starts, but lost their lines. The group is complete only with them. */
  readonly lost: Set<string>;
  /** True when the group needs no more attempts. */
  isComplete: boolean;
}

/** Returns the number of a group's attempts that have not ended. */
export function attemptsLeft({ started, earlier, episodes }: OpenGroup): number {
  return started - earlier.length - episodes.length;
}

/** An attempt to play. */
export interface AttemptJob {
  readonly group: OpenGroup;
  readonly assignment: EpisodeAssignment;
  /** The turns that the attempt shares with another one; absent if it plays from the first turn. */
  readonly fork?: Fork;
}

/** A started group. Its jobs cannot be taken before `GroupLedger.release()`. */
export interface StartedTask {
  readonly group: OpenGroup;
  readonly jobs: readonly AttemptJob[];
  /** True if the task has to be recorded before it is played. */
  readonly isRecorded: boolean;
  readonly fork?: Fork;
}

/** A group that earlier starts completed. */
export interface CompletedGroup {
  readonly groupIndex: number;
  /** At least one. */
  readonly rows: readonly FinishedEpisode[];
}
