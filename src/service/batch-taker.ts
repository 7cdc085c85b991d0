import type { EpisodeAssignment } from "../episode/episode-setup.ts";
import type { ColumnPlaces } from "../export/columns/row-columns.ts";
import type { Episode } from "../episode/episode.ts";
import type { Task } from "../task.ts";

/** A finished attempt, or the plan of one that was cancelled before its end. */
export type PlayedAttempt =
  | { readonly type: "played"; readonly episode: Episode }
  | {
      readonly type: "given-up";
      readonly assignment: Pick<EpisodeAssignment, "rolloutId" | "sampleIndex" | "seed">;
    };

/** The attempts at one task. */
export interface PlayedGroup {
  readonly task: Task;
  readonly attempts: readonly PlayedAttempt[];
}

/** The side columns of a group's rows. Their bytes can be read until the group is taken. */
export type GroupColumns = Pick<ColumnPlaces, "specs" | "source">;

/**
 * A receiver of groups other than the readers of `/v1/groups`: the adapter of another trainer's
 * protocol. It gets the groups of the batches that were submitted under its name.
 */
export interface Taker {
  /**
   * Sends a group to its trainer. Resolves when the trainer has stored it. If the service stops
   * earlier, its next start delivers the group again. Rejects once `signal` is aborted, and
   * otherwise only with an error that ends the service.
   */
  readonly take: (
    group: PlayedGroup,
    about: {
      readonly key: string;
      readonly signal: AbortSignal;
      /** The side columns of the group. Absent if the service has none. */
      readonly columns?: GroupColumns;
    },
  ) => Promise<void>;
  /**
   * True if the caller still waits for a batch after a restart of the service. Otherwise the
   * restart cancels the batch.
   */
  readonly waitsOn: boolean;
  /**
   * Called if a batch ends before its last group: it was cancelled, or it failed. `signal` is
   * aborted once the service stops.
   */
  readonly onCancelled?: (
    key: string,
    reason: string | undefined,
    about: { readonly signal: AbortSignal },
  ) => void;
}

/** Takers by the names that the service's journal uses. */
export type Takers = Readonly<Record<string, Taker>>;

/**
 * Returns the taker of a batch's groups. Returns `undefined` if readers of `/v1/groups` get them,
 * or if this start does not have the taker.
 */
export function takerOf(
  { taker }: { readonly taker: string | undefined },
  takers: Takers = {},
): Taker | undefined {
  return taker === undefined ? undefined : takers[taker];
}
