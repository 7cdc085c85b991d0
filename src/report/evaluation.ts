import type { FailureCode, Party } from "../errors.ts";
import type { Difference } from "../environment/state/difference.ts";
import type { UnscoredReason } from "../run/folder/unscored-reason.ts";
import type { Outcome, OutcomeCounts, StopReason } from "../trajectory/sample.ts";
import type { Estimate } from "./statistics/interval.ts";
import type { TauBenchMetrics } from "./tau-bench-metrics.ts";

/** One attempt at a task, in a report. JSON-able. */
export interface TrialEvaluation {
  /** 0-based, among all attempts at the task. */
  readonly trial: number;
  readonly rolloutId: string;
  /** Absent where nothing scored it. */
  readonly reward?: number;
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  readonly failure?: FailureCode;
}

/** How the attempts at one task went. JSON-able. */
export interface TaskEvaluation {
  readonly taskId: string;
  readonly taskIndex: number;
  /** In the order of their numbers. */
  readonly trials: readonly TrialEvaluation[];
  readonly scoredCount: number;
  readonly successCount: number;
  /** Over the scored attempts; absent where there are none. */
  readonly averageReward?: number;
}

/** A scored attempt that is no success, and why. JSON-able. */
export interface Miss {
  readonly rolloutId: string;
  readonly reward: number;
  readonly stopReason: StopReason;
  /** Absent where the environment does not say. */
  readonly difference?: Difference;
}

/** Why scored attempts were no successes; an attempt may count under several. JSON-able. */
export interface MissCounts {
  /** The conversation did not come to its end: a limit stopped it. */
  readonly notEnded: number;
  readonly wrongState: number;
  readonly missingOutputs: number;
  /** None of these is known. */
  readonly other: number;
}

/** Milliseconds over the finished episodes. JSON-able. */
export interface Durations {
  readonly mean: number;
  readonly median: number;
  readonly p95: number;
  readonly max: number;
}

/** What an evaluation came to. JSON-able. */
export interface Evaluation {
  readonly format: 1;
  readonly environment: string;
  readonly split: string;
  readonly taskCount: number;
  /** Attempts planned per task; where a run leaves open how many there are, the most that a task has. */
  readonly trialCount: number;
  readonly episodes: {
    /** As many a task as were planned, or as were played where those are more or a run leaves open how many there are. */
    readonly planned: number;
    readonly finished: number;
    readonly scored: number;
    /** Planned, and without a score: failed, out of time, or not played yet. */
    readonly unscored: number;
    /** The same by reason: `not-played`, or as `unscoredReason()` says. */
    readonly unscoredBy: Readonly<Partial<Record<UnscoredReason | "not-played", number>>>;
    /**
     * Finished attempts that part from another one of the run (`--branch-at`): they are no trials of their own, and left
     * out of all else here. Absent where there are none.
     */
    readonly branches?: number;
  };
  /** Mean over tasks of each task's mean over its scored attempts; absent where none is scored. */
  readonly averageReward?: Estimate;
  /** By k; over the tasks that have k scored attempts. A k that no task has is absent. */
  readonly passHatK: Readonly<Record<string, Estimate>>;
  readonly passAtK: Readonly<Record<string, Estimate>>;
  /** τ-bench's own figures, where an attempt without a score counts as failed; absent where tasks have unlike numbers of trials. */
  readonly tauBench?: TauBenchMetrics;
  readonly outcomes: Readonly<OutcomeCounts>;
  readonly stopReasons: Readonly<Partial<Record<StopReason, number>>>;
  readonly failures: {
    readonly byParty: Readonly<Partial<Record<Party, number>>>;
    readonly byCode: Readonly<Partial<Record<FailureCode, number>>>;
  };
  readonly missCounts: MissCounts;
  /** At most two hundred. */
  readonly misses: readonly Miss[];
  readonly turnCount: number;
  readonly toolCallCount: number;
  readonly formatErrorCount: number;
  readonly tokens: {
    readonly sampled: number;
    /** Sum over turns of what each was conditioned on. */
    readonly prompt: number;
    /** Of these, what the engine had cached, where it says. */
    readonly cachedPrompt: number;
    readonly userInput: number;
    readonly userOutput: number;
  };
  /** In US dollars; absent where no price is known. */
  readonly costUsd: { readonly policy?: number; readonly user?: number };
  readonly time: {
    /** Absent where no episode is finished. */
    readonly episodeMs?: Durations;
    /** Sums over turns. */
    readonly engineMs: number;
    readonly environmentMs: number;
    /** From the first episode's start to the last one's end, pauses included. */
    readonly spanMs: number;
  };
  readonly tasks: readonly TaskEvaluation[];
}
