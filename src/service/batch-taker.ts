import type { EpisodeAssignment } from "../episode/episode-setup.ts";
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

/**
 * Someone who is handed the groups of the batches that were asked for through it, in the place of the
 * readers of `/v1/groups`: another trainer's contract.
 */
export interface Taker {
  /**
   * Resolves when the group is stored by its receiver. A service that stops earlier delivers it
   * again in its next start. Rejects once `signal` is aborted, and otherwise only with an error
   * that ends the service.
   */
  readonly take: (
    group: PlayedGroup,
    about: { readonly key: string; readonly signal: AbortSignal },
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

/** By name, as the service's journal has them. */
export type Takers = Readonly<Record<string, Taker>>;

/**
 * Returns the taker of a batch's groups, or `undefined` for the readers of `/v1/groups`, or if this
 * start does not have it.
 */
export function takerOf(
  { taker }: { readonly taker: string | undefined },
  takers: Takers = {},
): Taker | undefined {
  return taker === undefined ? undefined : takers[taker];
}
