import type { EpisodeTracer } from "./episode-tracer.ts";
import type { Agent } from "../agent/agent.ts";
import type { ColumnSpecs } from "../columns/column-specs.ts";
import type { ColumnStore } from "../columns/column-store.ts";
import type { Engine, SamplingParameters } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import type { RolloutError } from "../errors.ts";
import type { Clock } from "../async/clock.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { Task } from "../task.ts";
import type { User } from "../user/user.ts";
import type { Episode, TurnRecord } from "./episode.ts";
import type { ForkPlace } from "../trajectory/sample.ts";
import type { EpisodeLimits } from "./limits.ts";

/** An attempt at a task. */
export interface EpisodeAssignment {
  readonly task: Task;
  /** Unique id of the attempt in the run, such as `tau-retail/test/7#3`. */
  readonly rolloutId: string;
  /** Id of the group of attempts that are compared with each other. */
  readonly groupId: string;
  /** 0-based index of the group in the run. */
  readonly groupIndex?: number;
  /** 0-based index in the group. */
  readonly sampleIndex: number;
  /** The attempt and the turn from which this attempt was forked. Absent if it is not a fork. */
  readonly forkedFrom?: ForkPlace;
  /** Seed of the user, and of the engine if sampling is seeded. */
  readonly seed: number;
  /** Seed of the engine instead of `seed`: a fork has the original's user and samples of its own. */
  readonly samplingSeed?: number;
  /** 1 for the first play of the attempt, 2 for the play after a failure, and so on. Default 1. */
  readonly attempt?: number;
  /** 1 for the first start of the play, 2 for its continuation after an interruption, and so on. Default 1. */
  readonly start?: number;
}

/**
 * Plays one attempt, as `playEpisode()` does. The player has `longestPlayMs()` milliseconds, and `leaveMs()` after
 * `interrupt` aborts. `signal` aborts at the end of this time.
 *
 * @throws the reason of `signal` if it aborts. After an interruption, returns an `aborted` episode, or throws the
 *   reason of `interrupt` if there is none.
 */
export type PlayAttempt = (
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  options: {
    readonly signal: AbortSignal;
    readonly interrupt?: AbortSignal;
    /** Removes secrets from inputs before the agent sees them. */
    readonly redactor?: Pick<Redactor, "thrown" | "without">;
  },
) => Promise<Episode>;

/**
 * The engine, agent, environment, user and settings of episodes. One setup serves any number of concurrent episodes.
 */
export interface EpisodeSetup {
  readonly environment: Environment;
  readonly user: User;
  /** The engine. One with `complete()` returns messages: its episodes have no ids and no rows. */
  readonly engine: Engine;
  /** Required if the engine returns ids. Absent if it returns messages. */
  readonly renderer?: Renderer;
  readonly agent: Agent;
  readonly sampling: SamplingParameters;
  readonly limits: EpisodeLimits;
  /** The side columns that the engine returns with each turn. Default: none. */
  readonly columns?: ColumnSpecs;
  /**
   * Keeps the columns' bytes. Default: in memory, with the rows. A run with a folder writes the bytes to the folder.
   */
  readonly columnStore?: ColumnStore;
  /**
   * A custom player instead of `playEpisode()`, for agents that keep their conversations themselves. Such attempts are
   * not recorded: they restart from the beginning after a stop, and cannot be replayed. An episode is checked as
   * `verify` does. If it breaks a rule, the attempt fails (`agent/exception`).
   */
  readonly play?: PlayAttempt;
  /**
   * Returns milliseconds since the epoch. With `Date.now` itself, an episode's time advances with `clock` from the
   * episode's start, so changes of the system time do not affect it.
   */
  readonly now: () => number;
  /**
   * The date that chat templates print. In a run with a folder: the start of the run (`promptTime` in `run.json`),
   * unless the renderer has another one. Default: the renderer's.
   */
  readonly promptTime?: Date;
  /** The clock of time limits. Default: the system clock. */
  readonly clock?: Clock;
  /** Called with each turn when it ends, for progress. */
  readonly onTurn?: (turn: TurnRecord) => void;
  /**
   * Called with each failure when it occurs, for logs. The failure's causes contain the original error. Includes
   * failures that do not end the episode, such as a world that cannot be disposed of.
   */
  readonly onTrouble?: (trouble: RolloutError) => void;
  /** Receives traces of episodes. */
  readonly tracer?: EpisodeTracer;
}
