import { differenceOf } from "../environment/state/difference.ts";
import type { FailureCode, Party } from "../errors.ts";
import type { SharedCounts } from "../episode/episode.ts";
import type { EpisodeRow } from "../run/folder/run-folder.ts";
import { unscoredReason, type UnscoredReason } from "../run/folder/unscored-reason.ts";
import type { OutcomeCounts, StopReason } from "../trajectory/sample.ts";
import { noSpending, withoutSpending } from "../user/chat/add-spending.ts";
import type { Durations, Evaluation, Miss, TaskEvaluation, TrialEvaluation } from "./evaluation.ts";
import { ComponentTally } from "./component-tally.ts";
import type { CountedRow } from "./rows/counted-row.ts";
import { RowTally } from "./rows/row-tally.ts";
import { boundsOf, estimateMean } from "./statistics/interval.ts";
import type { NumberedEpisode } from "./number-trials.ts";
import { estimatePasses } from "./statistics/estimate-passes.ts";
import { tauBenchMetrics } from "./tau-bench-metrics.ts";
import { isSuccessful, succeeded } from "./trial-result.ts";
import { sum } from "../values/sum.ts";
import { describeNumbers } from "../values/describe-numbers.ts";

/** The policy's prices in US dollars per million tokens. */
export interface PolicyPrices {
  readonly inputUsd: number;
  readonly outputUsd: number;
}

/** The tasks and attempts that an evaluation expects. */
export interface EvaluationPlan {
  readonly environment: string;
  readonly split: string;
  readonly tasks: readonly { readonly taskId: string; readonly taskIndex: number }[];
  /** The number of attempts per task. */
  readonly trialCount: number;
  /** Set if the number of attempts is not planned. Then the run's attempts count as all attempts. */
  readonly isOpen?: true;
  /**
   * Set if the other attempts at a task branch from its first attempt, once that is scored
   * (`--branch-at`).
   */
  readonly isBranching?: boolean;
  readonly prices?: PolicyPrices;
  /** The lowest reward of a success. Default: the environment's own verdict, or the reward 1. */
  readonly successThreshold?: number;
}

const maxMisses = 200;

/** The counts of an episode that shares no turns with another. */
const nothingShared: SharedCounts = {
  turnCount: 0,
  toolCallCount: 0,
  formatErrorCount: 0,
  userUsage: noSpending,
};

/** Sums up a run's episodes one by one, without keeping their conversations. */
export class EvaluationTally {
  readonly #plan: EvaluationPlan;
  readonly #trials = new Map<string, TrialEvaluation[]>();
  /** The numbers of attempts that branch from another attempt, by task id. */
  readonly #branchCounts = new Map<string, number>();
  readonly #outcomes: OutcomeCounts = { completed: 0, truncated: 0, failed: 0 };
  readonly #stopReasons: Partial<Record<StopReason, number>> = {};
  readonly #unscoredBy: Partial<Record<UnscoredReason, number>> = {};
  readonly #byParty: Partial<Record<Party, number>> = {};
  readonly #byCode: Partial<Record<FailureCode, number>> = {};
  readonly #missCounts = { notEnded: 0, wrongState: 0, missingOutputs: 0, other: 0 };
  readonly #misses: { readonly miss: Miss; readonly place: readonly [number, number] }[] = [];
  readonly #durations: number[] = [];
  readonly #counts = { turnCount: 0, toolCallCount: 0, formatErrorCount: 0 };
  readonly #tokens = { sampled: 0, prompt: 0, cachedPrompt: 0, userInput: 0, userOutput: 0 };
  #unmeteredTurnCount = 0;
  readonly #time = { engineMs: 0, environmentMs: 0 };
  readonly #rows = new RowTally();
  readonly #components = new ComponentTally();
  #userCostUsd: number | undefined;
  #firstStartMs = Infinity;
  #lastEndMs = -Infinity;

  constructor(plan: EvaluationPlan) {
    this.#plan = plan;
    for (const { taskId } of plan.tasks) this.#trials.set(taskId, []);
  }

  /**
   * Adds a finished episode. Ignores an episode of a task that is not in the plan. An attempt that
   * branches from another one is only counted.
   *
   * @param rows - The episode's training rows with trained tokens, if they are known.
   */
  add({ row, trial, isBranch }: NumberedEpisode, rows: readonly CountedRow[] = []): void {
    const { outcome, stopReason, failure, reward } = row;
    const { successThreshold } = this.#plan;
    const isSuccess =
      reward !== undefined && succeeded({ reward, success: row.success }, successThreshold);
    const isOwnRule = row.success !== undefined || successThreshold !== undefined;
    const trials = this.#trials.get(row.taskId);
    if (trials === undefined) return;
    if (isBranch === true) {
      this.#branchCounts.set(row.taskId, this.#branchCountOf(row.taskId) + 1);
      return;
    }
    trials.push({
      trial,
      rolloutId: row.rolloutId,
      ...(reward !== undefined && { reward }),
      ...(reward !== undefined && isOwnRule && { success: isSuccess }),
      outcome,
      stopReason,
      ...(failure !== undefined && { failure: failure.code }),
    });
    this.#outcomes[outcome] = (this.#outcomes[outcome] ?? 0) + 1;
    count(this.#stopReasons, stopReason);
    const reason = unscoredReason(row);
    if (reason !== undefined) count(this.#unscoredBy, reason);
    if (failure !== undefined) {
      count(this.#byParty, failure.party);
      count(this.#byCode, failure.code);
    }
    if (reward !== undefined && !isSuccess) this.#addMiss({ row, trial }, reward);
    if (reward !== undefined) this.#components.add(row);
    this.#addEffort(row);
    this.#rows.add(row, rows);
  }

  #branchCountOf(taskId: string): number {
    return this.#branchCounts.get(taskId) ?? 0;
  }

  #addMiss({ row, trial }: NumberedEpisode, reward: number): void {
    const { rolloutId, stopReason, outcome, rewardDetails, taskIndex } = row;
    const difference = differenceOf(rewardDetails);
    const counts = this.#missCounts;
    const notEnded = outcome !== "completed";
    const wrongState = (difference?.state.length ?? 0) > 0;
    const missingOutputs = (difference?.missingOutputs.length ?? 0) > 0;
    if (notEnded) counts.notEnded++;
    if (wrongState) counts.wrongState++;
    if (missingOutputs) counts.missingOutputs++;
    if (!notEnded && !wrongState && !missingOutputs) counts.other++;
    const known = difference === undefined ? {} : { difference };
    const miss = { rolloutId, reward, stopReason, ...known };
    this.#misses.push({ miss, place: [taskIndex, trial] });
  }

  #addEffort({ counts, turns, startedAtMs, durationMs, ...row }: EpisodeRow): void {
    // The shared turns were played and paid for by another attempt.
    const { shared = nothingShared } = row;
    const userUsage = withoutSpending(row.userUsage, shared.userUsage);
    this.#durations.push(durationMs);
    this.#firstStartMs = Math.min(this.#firstStartMs, startedAtMs);
    this.#lastEndMs = Math.max(this.#lastEndMs, startedAtMs + durationMs);
    this.#counts.turnCount += counts.turnCount - shared.turnCount;
    this.#counts.toolCallCount += counts.toolCallCount - shared.toolCallCount;
    this.#counts.formatErrorCount += counts.formatErrorCount - shared.formatErrorCount;
    this.#tokens.sampled += counts.sampledTokenCount;
    for (const turn of turns.slice(shared.turnCount)) {
      this.#tokens.prompt += turn.promptTokenCount;
      this.#tokens.cachedPrompt += turn.cachedTokenCount ?? 0;
      if (turn.isUnmetered === true) this.#unmeteredTurnCount += 1;
      this.#time.engineMs += turn.engineMs;
      this.#time.environmentMs += turn.environmentMs;
    }
    this.#tokens.userInput += userUsage.inputTokenCount;
    this.#tokens.userOutput += userUsage.outputTokenCount;
    if (userUsage.costUsd !== undefined) {
      this.#userCostUsd = (this.#userCostUsd ?? 0) + userUsage.costUsd;
    }
  }

  /** Returns the evaluation of the episodes so far. */
  evaluation(): Evaluation {
    const { environment, split, trialCount, isOpen, successThreshold } = this.#plan;
    const tasks = this.#plan.tasks.map((task) => this.#task(task));
    const finished = this.#durations.length;
    const scored = sum(tasks.map(({ scoredCount }) => scoredCount));
    const planned = sum(tasks.map((task) => this.#plannedOf(task)));
    const branchCount = sum([...this.#branchCounts.values()]);
    const rewards = tasks.flatMap((task) => task.averageReward ?? []);
    const allRewards = tasks.flatMap(({ trials }) => trials.flatMap(({ reward }) => reward ?? []));
    const averageReward = estimateMean(rewards, boundsOf(allRewards));
    const notPlayed = planned - finished;
    const rows = this.#rows.evaluation();
    const components = this.#components.evaluation();
    const unscoredBy = {
      ...this.#unscoredBy,
      ...(notPlayed !== 0 && { "not-played": notPlayed }),
    };
    return {
      format: 1,
      environment,
      split,
      taskCount: tasks.length,
      trialCount,
      ...(successThreshold !== undefined && { successThreshold }),
      episodes: {
        planned,
        finished,
        scored,
        unscored: planned - scored,
        unscoredBy,
        ...(branchCount !== 0 && { branches: branchCount }),
      },
      ...(averageReward !== undefined && { averageReward }),
      ...(components !== undefined && { components }),
      ...estimatePasses(tasks, countTo(trialCount)),
      // τ-bench's formula assumes that all tasks have the same number of trials, and counts missing
      // trials as failed.
      ...(!(finished === 0 || branchCount > 0 || (isOpen === true && areUneven(tasks))) && {
        tauBench: tauBenchMetrics(asTauBench(tasks)),
      }),
      outcomes: this.#outcomes,
      stopReasons: this.#stopReasons,
      failures: { byParty: this.#byParty, byCode: this.#byCode },
      missCounts: this.#missCounts,
      misses: this.#sortedMisses(),
      ...this.#counts,
      tokens: this.#tokens,
      ...(this.#unmeteredTurnCount > 0 && { unmeteredTurnCount: this.#unmeteredTurnCount }),
      costUsd: this.#cost(),
      ...(rows !== undefined && { rows }),
      time: {
        ...(finished !== 0 && { episodeMs: describeDurations(this.#durations) }),
        ...this.#time,
        spanMs: finished === 0 ? 0 : this.#lastEndMs - this.#firstStartMs,
      },
      tasks,
    };
  }

  /** Returns the number of independent trials that a task should have. */
  #plannedOf({ taskId, trials }: TaskEvaluation): number {
    const { trialCount, isOpen, isBranching } = this.#plan;
    // A run that continues during its evaluation may have more attempts than its plan had.
    const left = Math.max(trialCount - this.#branchCountOf(taskId) - trials.length, 0);
    if (isOpen === true || left === 0) return trials.length;
    if (isBranching !== true) return trials.length + left;
    const [first] = trials;
    if (first?.trial !== 0) return trials.length + 1;
    // No attempt branches from an attempt without a score.
    return trials.length + (first.reward === undefined ? left : 0);
  }

  /**
   * Returns the misses by task and trial, so that a report does not depend on the order in which
   * episodes ended.
   */
  #sortedMisses(): readonly Miss[] {
    return this.#misses
      .toSorted(({ place: a }, { place: b }) => a[0] - b[0] || a[1] - b[1])
      .slice(0, maxMisses)
      .map(({ miss }) => miss);
  }

  #task({ taskId, taskIndex }: EvaluationPlan["tasks"][number]): TaskEvaluation {
    const trials = (this.#trials.get(taskId) ?? []).toSorted((a, b) => a.trial - b.trial);
    const rewards = trials.flatMap(({ reward }) => reward ?? []);
    return {
      taskId,
      taskIndex,
      trials,
      scoredCount: rewards.length,
      successCount: trials.filter(isSuccessful).length,
      ...(rewards.length !== 0 && { averageReward: sum(rewards) / rewards.length }),
    };
  }

  #cost(): Evaluation["costUsd"] {
    const { prices } = this.#plan;
    const user = this.#userCostUsd;
    const { prompt, sampled } = this.#tokens;
    return {
      ...(prices !== undefined && {
        policy: (prompt * prices.inputUsd + sampled * prices.outputUsd) / 1e6,
      }),
      ...(user !== undefined && { user }),
    };
  }
}

/** Returns the numbers from 1 to `last`. */
function countTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

/** True if tasks have different numbers of attempts. */
function areUneven(tasks: readonly TaskEvaluation[]): boolean {
  return new Set(tasks.map(({ trials }) => trials.length)).size > 1;
}

/** Returns the results as τ-bench counts them: an attempt without a score has the reward 0. */
function asTauBench(tasks: readonly TaskEvaluation[]) {
  return tasks.flatMap(({ taskId, trials }) =>
    trials.map(({ trial, reward = 0 }) => ({ task: taskId, trial, reward })),
  );
}

function describeDurations(durations: readonly number[]): Durations {
  const { sum: _sum, ...described } = describeNumbers(durations)!;
  return described;
}

function count<Key extends string>(counts: Partial<Record<Key, number>>, key: Key): void {
  counts[key] = (counts[key] ?? 0) + 1;
}
