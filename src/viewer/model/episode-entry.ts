import type { ColumnSpecs } from "../../columns/column-specs.ts";
import type { ForkPlace, Outcome, StopReason } from "../../trajectory/sample.ts";

/** An episode in a list: its counts and its end, without texts. JSON-able. */
export interface EpisodeEntry {
  /** The episode's position in the order in which the episodes ended. */
  readonly order: number;
  readonly rolloutId: string;
  readonly groupId: string;
  readonly taskId: string;
  readonly taskIndex: number;
  readonly sampleIndex: number;
  /** The environment's name. Absent if the episode's line does not have it. */
  readonly environment?: string;
  readonly split?: string;
  /** The beginning of the first words of the user. Absent if there are none near the line's beginning. */
  readonly about?: string;
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  /** The first reason of the score (see `firstReason()`). Absent without a reason. */
  readonly reason?: string;
  /** The reward. Absent if the episode is unscored. */
  readonly reward?: number;
  /** True if the scored episode is a success. Absent if the usual rule holds: the reward 1. */
  readonly success?: boolean;
  /** The value of each named component of the reward. Absent if the episode has none. */
  readonly components?: Readonly<Record<string, number>>;
  /** The party that failed. Absent if no party failed. */
  readonly party?: string;
  readonly failureCode?: string;
  /** The number of training rows. */
  readonly rowCount: number;
  readonly turnCount: number;
  readonly tokenCount: number;
  readonly sampledTokenCount: number;
  readonly toolCallCount: number;
  /** The number of malformed turns. */
  readonly formatErrorCount: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** The fork point. Absent if the episode is not a fork. */
  readonly forkedFrom?: ForkPlace;
  /**
   * Versions of the policy that sampled the episode, in the order in which they appear. Absent until they are known.
   */
  readonly versions?: readonly string[];
  /** The staleness (see `withVersions()`). Absent until the versions are known. */
  readonly staleness?: number;
}

/** Versions of the policy that sampled an episode, in the order in which they appear. */
export type EpisodeVersions = Readonly<Record<string, readonly string[]>>;

/** The state of a run. */
export type RunState =
  | "finished"
  | "interrupted"
  | "too-many-failures"
  /** A process has locked the run's folder. */
  | "running"
  /** The run has not finished, and no process plays it. */
  | "stopped"
  /** The folder is gone. */
  | "removed";

/** Facts about a run for lists. JSON-able. */
export interface RunFacts {
  /** The name of the run in links. */
  readonly key: string;
  readonly dir: string;
  readonly state: RunState;
  /**
   * A number that changes when earlier data is no longer valid, for example because a file was
   * replaced.
   */
  readonly generation: number;
  readonly episodeCount: number;
  /** The planned number of episodes. Absent if the run has none. */
  readonly planned?: number;
  readonly environment?: string;
  readonly split?: string;
  readonly model?: string;
  readonly engine?: string;
  /** Present if the engine returned messages, so that there are no training rows. */
  readonly hasNoRows?: true;
  /** The run's settings. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /** The run's side columns. Absent if it has none. */
  readonly columns?: ColumnSpecs;
  /** The names of the teachers that scored rows of the run. Absent if there are none. */
  readonly teachers?: readonly string[];
  /** The number of unreadable lines. */
  readonly damagedCount: number;
  readonly turnwright: string;
  /** The lowest reward of a success, if the viewer was started with one. */
  readonly successThreshold?: number;
  /** True if an engine is available to compute logprobs again. */
  readonly canRescore?: boolean;
}

/**
 * True if a run has forks of another run's episode, which is not in this run. An episode of this
 * run can have the same id.
 */
export function isForkOfOther({ configuration }: Pick<RunFacts, "configuration">): boolean {
  return configuration["forkedFrom"] !== undefined;
}
