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
  /** Absent where its line does not say. */
  readonly environment?: string;
  readonly split?: string;
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  /** Absent where nothing scored the episode. */
  readonly reward?: number;
  /** Whose failure it was, where it failed. */
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
  /** Where it parts from another attempt, for forks. */
  readonly forkedFrom?: ForkPlace;
  /** See `withStaleness()`; absent until the versions are known. */
  readonly staleness?: number;
}

/** Versions of the policy that sampled an episode, in the order in which they appear. */
export type EpisodeVersions = Readonly<Record<string, readonly string[]>>;

/** How a run stands. */
export type RunState =
  | "finished"
  | "interrupted"
  | "too-many-failures"
  /** A process holds its folder. */
  | "running"
  /** Not at its end, and nobody plays it. */
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
  /** How many there will be; absent where the run does not say. */
  readonly planned?: number;
  readonly environment?: string;
  readonly split?: string;
  readonly model?: string;
  readonly engine?: string;
  /** What was asked for. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /** Lines that nobody can read. */
  readonly damagedCount: number;
  readonly turnwright: string;
  /** Whether the policy's versions of all episodes are known by now. */
  readonly versionsReady: boolean;
  /** Whether an engine stands by that computes logprobs again. */
  readonly canRescore?: boolean;
}

/**
 * Whether a run holds forks of another run's episode: what they part from is not in it. In runs of earlier
 * versions an episode of its own may have the id of that.
 */
export function isForkOfOther({ configuration }: Pick<RunFacts, "configuration">): boolean {
  return configuration["forkedFrom"] !== undefined;
}
