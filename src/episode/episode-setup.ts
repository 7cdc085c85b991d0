import type { EpisodeTracer } from "./episode-tracer.ts";
import type { Agent } from "../agent/agent.ts";
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

/** Which attempt at which task. */
export interface EpisodeAssignment {
  readonly task: Task;
  /** Unique within the run, such as `tau-retail/test/7#3`. */
  readonly rolloutId: string;
  /** Shared by the attempts that are compared with each other. */
  readonly groupId: string;
  /** 0-based place of the group within the run. */
  readonly groupIndex?: number;
  /** 0-based place within the group. */
  readonly sampleIndex: number;
  /** Where a fork parted from another rollout; absent for what is no fork. */
  readonly forkedFrom?: ForkPlace;
  /** Seeds the user and, where sampling asks for it, the engine. */
  readonly seed: number;
  /** Seeds the engine in the place of `seed`: a fork has the user of what it parts from. */
  readonly samplingSeed?: number;
  /** 1 for the first play, 2 for the play after a failure, and so on. Default 1. */
  readonly attempt?: number;
  /** 1 where this play of the attempt is the first, 2 where it goes on after an interruption. Default 1. */
  readonly start?: number;
}

/**
 * Plays one attempt to its end, in the way of `playEpisode()`. It is waited for as long as the limits allow (see
 * `longestPlayMs()`), and, once `interrupt` is aborted, for as long as it takes to leave; `signal` is aborted then.
 *
 * @throws the reason of `signal` where that is aborted; where `interrupt` is, the episode is `aborted`, or it throws
 *   that reason where it has nothing to hand over.
 */
export type PlayAttempt = (
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  options: {
    readonly signal: AbortSignal;
    readonly interrupt?: AbortSignal;
    /** Takes secrets out of what comes in, before the agent sees it. */
    readonly redactor?: Pick<Redactor, "thrown" | "without">;
  },
) => Promise<Episode>;

/** Who plays, and how. One value serves any number of episodes at once. */
export interface EpisodeSetup {
  readonly environment: Environment;
  readonly user: User;
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly agent: Agent;
  readonly sampling: SamplingParameters;
  readonly limits: EpisodeLimits;
  /**
   * Plays attempts in the place of `playEpisode()`: for agents that keep their conversations themselves.
   * Nothing of such an attempt is recorded: one that is stopped begins anew, and none is played again.
   * What it returns is held to all that `verify` asks of an episode and its rows, each for itself and together;
   * one that breaks a rule fails the attempt (`agent/exception`).
   */
  readonly play?: PlayAttempt;
  /**
   * Milliseconds since the epoch. Where it is `Date.now` itself, an episode's time goes on steadily by `clock`
   * from its beginning, however the machine's is set meanwhile.
   */
  readonly now: () => number;
  /**
   * What chat templates that print the date take for today. In a run with a folder it is the moment at which
   * that began (`promptTime` of its `run.json`), unless one was chosen for the renderer. Default: the renderer's own.
   */
  readonly promptTime?: Date;
  /** In which deadlines are kept. Default: the machine's. */
  readonly clock?: Clock;
  /** Told of each turn as it ends; for progress. */
  readonly onTurn?: (turn: TurnRecord) => void;
  /**
   * Told of each failure as it is met, with what was thrown among its causes, also of those that do not
   * end the episode (a world that cannot be disposed of); for logs.
   */
  readonly onTrouble?: (trouble: RolloutError) => void;
  /** Told what the episode does, for traces. */
  readonly tracer?: EpisodeTracer;
}
