import type { FailureCode, Party } from "../errors.ts";
import type { Difference } from "../environment/state/difference.ts";
import type { UnscoredReason } from "../run/folder/unscored-reason.ts";
import type { Outcome, OutcomeCounts, StopReason } from "../trajectory/sample.ts";
import type { ComponentEvaluation } from "./component-tally.ts";
import type { RowsEvaluation } from "./rows/rows-evaluation.ts";
import type { Estimate } from "./statistics/interval.ts";
import type { TauBenchMetrics } from "./tau-bench-metrics.ts";

/** One attempt at a task, in a report. JSON-able. */
export interface TrialEvaluation {
  /** 0-based number among all attempts at the task. */
  readonly trial: number;
  readonly rolloutId: string;
  /** The attempt's reward. Absent if the attempt is unscored. */
  readonly reward?: number;
  /** The environment's verdict. Absent if the attempt is unscored, or if a success is exactly the reward 1. */
  readonly success?: boolean;
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  readonly failure?: FailureCode;
}

/** The attempts at one task. JSON-able. */
export interface TaskEvaluation {
  readonly taskId: string;
  readonly taskIndex: number;
  /** The attempts in the order of their numbers. */
  readonly trials: readonly TrialEvaluation[];
  readonly scoredCount: number;
  readonly successCount: number;
  /** The mean over the scored attempts. Absent if there are none. */
  readonly averageReward?: number;
}

/** A scored attempt that is not a success, with the reason. JSON-able. */
export interface Miss {
  readonly rolloutId: string;
  readonly reward: number;
  readonly stopReason: StopReason;
  /** The difference from the wanted result. Absent if the environment reports none. */
  readonly difference?: Difference;
}

/** Counts of scored attempts without success, by reason. An attempt can count under several reasons. JSON-able. */
export interface MissCounts {
  /** A limit stopped the conversation. */
  readonly notEnded: number;
  readonly wrongState: number;
  readonly missingOutputs: number;
  /** The reason is unknown. */
  readonly other: number;
}

/** Statistics of the finished episodes' durations, in milliseconds. JSON-able. */
export interface Durations {
  readonly mean: number;
  readonly median: number;
  readonly p95: number;
  readonly max: number;
}

/** The result of an evaluation. JSON-able. */
export interface Evaluation {
  readonly format: 1;
  readonly environment: string;
  readonly split: string;
  readonly taskCount: number;
  /**
   * The planned number of attempts per task. For a run without a fixed plan, the largest number
   * that a task has.
   */
  readonly trialCount: number;
  /** The lowest reward of a success. If absent, the environment's verdict decides, or the reward 1. */
  readonly successThreshold?: number;
  readonly episodes: {
    /** The planned number of episodes, or the number played if that is greater or the run has no fixed plan. */
    readonly planned: number;
    readonly finished: number;
    readonly scored: number;
    /** The number of planned episodes without a score: failed, out of time, or not played yet. */
    readonly unscored: number;
    /** The numbers of unscored episodes by reason: `not-played`, or a result of `unscoredReason()`. */
    readonly unscoredBy: Readonly<Partial<Record<UnscoredReason | "not-played", number>>>;
    /**
     * The number of finished attempts that branch from another attempt of the run (`--branch-at`).
     * They are not trials, and no other figure counts them. Absent if there are none.
     */
    readonly branches?: number;
  };
  /** The mean over tasks of the mean over each task's scored attempts. Absent if no attempt is scored. */
  readonly averageReward?: Estimate;
  /** The components of the rewards by name. Absent if no score has components. */
  readonly components?: Readonly<Record<string, ComponentEvaluation>>;
  /**
   * pass^k by k, over the tasks that have at least k scored attempts. A k without such a task is
   * absent.
   */
  readonly passHatK: Readonly<Record<string, Estimate>>;
  readonly passAtK: Readonly<Record<string, Estimate>>;
  /**
   * τ-bench's own figures, which count an attempt without a score as failed. Absent if tasks have
   * different numbers of trials.
   */
  readonly tauBench?: TauBenchMetrics;
  readonly outcomes: Readonly<OutcomeCounts>;
  readonly stopReasons: Readonly<Partial<Record<StopReason, number>>>;
  readonly failures: {
    readonly byParty: Readonly<Partial<Record<Party, number>>>;
    readonly byCode: Readonly<Partial<Record<FailureCode, number>>>;
  };
  readonly missCounts: MissCounts;
  /** The first two hundred misses, by task and trial. */
  readonly misses: readonly Miss[];
  readonly turnCount: number;
  readonly toolCallCount: number;
  readonly formatErrorCount: number;
  readonly tokens: {
    readonly sampled: number;
    /** The number of prompt tokens, summed over turns. */
    readonly prompt: number;
    /** The part of the prompt tokens that the engine had cached, if it reports it. */
    readonly cachedPrompt: number;
    readonly userInput: number;
    readonly userOutput: number;
  };
  /** Number of turns for which the engine reported no token counts; `tokens` leaves them out. Absent instead of 0. */
  readonly unmeteredTurnCount?: number;
  /** Costs in US dollars. A member is absent if its price is unknown. */
  readonly costUsd: { readonly policy?: number; readonly user?: number };
  /** The training rows. Absent if no attempt has several. */
  readonly rows?: RowsEvaluation;
  readonly time: {
    /** The durations of the episodes. Absent if no episode has finished. */
    readonly episodeMs?: Durations;
    /** The time for which turns waited for the engine, summed over turns, in milliseconds. */
    readonly engineMs: number;
    readonly environmentMs: number;
    /**
     * The time from the first episode's start to the last one's end, including pauses, in
     * milliseconds.
     */
    readonly spanMs: number;
  };
  readonly tasks: readonly TaskEvaluation[];
}
