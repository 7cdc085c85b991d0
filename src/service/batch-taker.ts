import type { EpisodeAssignment } from "../episode/episode-setup.ts";
import type { Episode } from "../episode/episode.ts";
import type { Task } from "../task.ts";

/** An attempt as it was played, or as it was to be where it was given up before its end. */
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
   * Resolves when the group is safe with whoever it is for; a service that stops before hands it over again
   * at its next start. Rejects once `signal` is aborted, and otherwise only with what ends the service.
   */
  readonly take: (
    group: PlayedGroup,
    about: { readonly key: string; readonly signal: AbortSignal },
  ) => Promise<void>;
  /** Whether someone still waits for a batch behind a restart of the service; where not, it is cancelled. */
  readonly waitsOn: boolean;
  /**
   * Told that a batch ended otherwise than by its last group: it was cancelled, or failed for a reason. `signal` is
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

/** Who is to be given a batch's groups; `undefined` for the readers of `/v1/groups`, and where this start has none. */
export function takerOf(
  { taker }: { readonly taker: string | undefined },
  takers: Takers = {},
): Taker | undefined {
  return taker === undefined ? undefined : takers[taker];
}
