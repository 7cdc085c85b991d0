import type { ForkPlace, Outcome, StopReason } from "../../trajectory/sample.ts";

/** An episode in a list: sums and ends, no texts. JSON-able. */
export interface EpisodeEntry {
  /** Place in the order in which the episodes ended. */
  readonly order: number;
  readonly rolloutId: string;
  readonly groupId: string;
  readonly taskId: string;
  readonly taskIndex: number;
  readonly sampleIndex: number;
  /** Absent if the line does not name it. */
  readonly environment?: string;
  readonly split?: string;
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  /** Absent if the episode is unscored. */
  readonly reward?: number;
  /** The party that failed. Absent if none did. */
  readonly party?: string;
  readonly failureCode?: string;
  readonly turnCount: number;
  readonly tokenCount: number;
  readonly sampledTokenCount: number;
  readonly toolCallCount: number;
  /** Malformed turns. */
  readonly formatErrorCount: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** The fork point. Absent if the episode is not a fork. */
  readonly forkedFrom?: ForkPlace;
  /** See `withStaleness()`; absent until the versions are known. */
  readonly staleness?: number;
}

/** Versions of the policy that sampled an episode, in the order in which they appear. */
export type EpisodeVersions = Readonly<Record<string, readonly string[]>>;

/** The state of a run. */
export type RunState =
  | "finished"
  | "interrupted"
  | "too-many-failures"
  /** A process holds its folder. */
  | "running"
  /** The run has not finished, and no process plays it. */
  | "stopped";

/** A run, as far as lists show it. JSON-able. */
export interface RunFacts {
  /** Names the run in links. */
  readonly key: string;
  readonly dir: string;
  readonly state: RunState;
  /** Another number than before: what was read before holds no longer. */
  readonly generation: number;
  readonly episodeCount: number;
  /** The planned number of episodes. Absent if the run has none. */
  readonly planned?: number;
  readonly environment?: string;
  readonly split?: string;
  readonly model?: string;
  readonly engine?: string;
  /** The run's settings. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /** The number of unreadable lines. */
  readonly damagedCount: number;
  readonly turnwright: string;
  /** True once the policy versions of all episodes are known. */
  readonly versionsReady: boolean;
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
