import type { SharedCounts } from "../episode/episode.ts";
import { GatewayCounters, type GatewayCounts } from "../episode/gateway-counters.ts";
import type { FailureCode } from "../errors.ts";
import type { OutcomeCounts, StopReason } from "../trajectory/sample.ts";
import { addSpending, noSpending, withoutSpending } from "../user/chat/add-spending.ts";
import type { UserSpending } from "../user/user.ts";
import type { FinishedEpisode } from "./folder/episode-row.ts";
import type { TurnTotals } from "./packed/packed-episode.ts";
import { unscoredReason, type UnscoredReason } from "./folder/unscored-reason.ts";

/** The progress of a run. JSON-able; also the main part of `summary.json`. */
export interface RunProgress {
  /** The total number of episodes. Absent if it is unknown, for example in runs without end. */
  readonly planned?: number;
  /** The number of finished episodes, also of earlier starts. */
  readonly finished: number;
  /** The number of finished episodes of earlier starts. */
  readonly resumed: number;
  readonly running: number;
  readonly outcomes: Readonly<OutcomeCounts>;
  readonly stopReasons: Readonly<Partial<Record<StopReason, number>>>;
  /** Failed episodes by code. */
  readonly failures: Readonly<Partial<Record<FailureCode, number>>>;
  /** The message of the first failure. Absent if there was no failure. */
  readonly firstFailure?: string;
  /** The number of problems in finished episodes that did not fail them, by code (see `Episode.troubles`). */
  readonly troubles: Readonly<Partial<Record<FailureCode, number>>>;
  /** The message of the first trouble; absent without troubles. */
  readonly firstTrouble?: string;
  /** The number of failed attempts that were played again. */
  readonly retried: number;
  /** The number of episodes that have a reward. */
  readonly scored: number;
  /** The number of finished episodes without a reward, by reason. */
  readonly unscored: Readonly<Partial<Record<UnscoredReason, number>>>;
  /** The mean over the scored episodes; absent if no episode is scored. */
  readonly rewardMean?: number;
  readonly turnCount: number;
  readonly toolCallCount: number;
  readonly formatErrorCount: number;
  /** The number of ids that the policy sampled, which are trained. */
  readonly sampledTokenCount: number;
  /** The number of ids of all rows, trained or not. */
  readonly tokenCount: number;
  /**
   * The usage of the users in finished episodes, without failed attempts that were played again. The turns that a fork
   * shares are counted once, here and in the counts above.
   */
  readonly userUsage: UserSpending;
  /**
   * The counts of the requests of an external agent in finished episodes, without failed attempts that were played
   * again. Absent without such an agent.
   */
  readonly gateway?: GatewayCounts;
  /** The number of groups that ended in this start: of delivered ones, and of those that were left out. */
  readonly groups: { readonly finished: number; readonly leftOut: number };
  /** The staleness of the groups that ended in this start; absent if no version is known. */
  readonly staleness?: { readonly mean: number; readonly most: number };
  /** The time that turns have waited in this start, in milliseconds over all episodes. */
  readonly spentMs: {
    readonly engine: number;
    readonly user: number;
    readonly environment: number;
  };
  /** The time since the start, in milliseconds. */
  readonly elapsedMs: number;
  /** The sampling rate of this start. */
  readonly sampledTokensPerSecond: number;
}

/** Counts the episodes, tokens and groups of a run. */
export class RunTally {
  #planned: number | undefined;
  readonly #startedAtMs: number;
  readonly #now: () => number;
  readonly #outcomes: OutcomeCounts = { completed: 0, truncated: 0, failed: 0 };
  readonly #stopReasons: Partial<Record<StopReason, number>> = {};
  readonly #failures: Partial<Record<FailureCode, number>> = {};
  readonly #unscored: Partial<Record<UnscoredReason, number>> = {};
  #firstFailure: string | undefined;
  readonly #troubles: Partial<Record<FailureCode, number>> = {};
  #firstTrouble: string | undefined;
  #resumed = 0;
  #running = 0;
  #retried = 0;
  #scored = 0;
  #rewardSum = 0;
  #turnCount = 0;
  #toolCallCount = 0;
  #formatErrorCount = 0;
  #sampledTokenCount = 0;
  #tokenCount = 0;
  #userUsage = noSpending;
  #gateway: GatewayCounters | undefined;
  /**
   * The number of tokens that were sampled in this start, counted turn by turn, so that the rate does not wait for
   * episodes to end.
   */
  #liveTokenCount = 0;
  readonly #spentMs = { engine: 0, user: 0, environment: 0 };
  #agedCount = 0;
  #stalenessSum = 0;
  #stalenessMost = 0;
  readonly #groups = { finished: 0, leftOut: 0 };

  constructor({ planned, now }: { readonly planned?: number; readonly now: () => number }) {
    this.#planned = planned;
    this.#now = now;
    this.#startedAtMs = now();
  }

  /** Sets the total number of episodes. */
  plan(planned: number): void {
    this.#planned = planned;
  }

  episodeResumed(row: FinishedEpisode): void {
    this.#resumed++;
    this.#add(row);
  }

  /** The number of running attempts. */
  get running(): number {
    return this.#running;
  }

  episodeStarted(): void {
    this.#running++;
  }

  /** Counts an attempt that ended without a finished episode. */
  episodeLeft(): void {
    this.#running--;
  }

  attemptRetried(): void {
    this.#retried++;
  }

  turnEnded({
    sampledTokenCount,
    engineMs,
    userMs = 0,
    environmentMs,
  }: Omit<TurnTotals, "turnIndex">): void {
    this.#liveTokenCount += sampledTokenCount;
    this.#spentMs.engine += engineMs;
    this.#spentMs.user += userMs;
    this.#spentMs.environment += environmentMs;
  }

  /** Counts a group that ended and is delivered. */
  groupFinished(staleness?: number): void {
    this.#groups.finished++;
    this.#addStaleness(staleness);
  }

  /** Counts a group as left out that was counted as delivered before, because it became too old while it waited. */
  groupWithdrawn(): void {
    this.#groups.finished--;
    this.#groups.leftOut++;
  }

  /** Counts a group that ended and is left out. */
  groupLeftOut(staleness?: number): void {
    this.#groups.leftOut++;
    this.#addStaleness(staleness);
  }

  episodeFinished(row: FinishedEpisode): void {
    this.#running--;
    this.#add(row);
  }

  progress(): RunProgress {
    // A caller's clock may be set back.
    const elapsedMs = Math.max(this.#now() - this.#startedAtMs, 0);
    const finished = Object.values(this.#outcomes).reduce((sum, count) => sum + count, 0);
    return {
      ...(this.#planned !== undefined && { planned: this.#planned }),
      finished,
      resumed: this.#resumed,
      running: this.#running,
      outcomes: { ...this.#outcomes },
      stopReasons: { ...this.#stopReasons },
      failures: { ...this.#failures },
      ...(this.#firstFailure !== undefined && { firstFailure: this.#firstFailure }),
      troubles: { ...this.#troubles },
      ...(this.#firstTrouble !== undefined && { firstTrouble: this.#firstTrouble }),
      retried: this.#retried,
      scored: this.#scored,
      unscored: { ...this.#unscored },
      ...(this.#scored !== 0 && { rewardMean: this.#rewardSum / this.#scored }),
      turnCount: this.#turnCount,
      toolCallCount: this.#toolCallCount,
      formatErrorCount: this.#formatErrorCount,
      sampledTokenCount: this.#sampledTokenCount,
      tokenCount: this.#tokenCount,
      userUsage: this.#userUsage,
      ...(this.#gateway !== undefined && { gateway: this.#gateway.counts }),
      groups: { ...this.#groups },
      ...(this.#agedCount !== 0 && {
        staleness: {
          mean: this.#stalenessSum / this.#agedCount,
          most: this.#stalenessMost,
        },
      }),
      spentMs: { ...this.#spentMs },
      elapsedMs,
      sampledTokensPerSecond: elapsedMs === 0 ? 0 : (this.#liveTokenCount * 1000) / elapsedMs,
    };
  }

  #addStaleness(staleness: number | undefined): void {
    if (staleness === undefined) return;
    this.#agedCount++;
    this.#stalenessSum += staleness;
    this.#stalenessMost = Math.max(this.#stalenessMost, staleness);
  }

  #add(row: FinishedEpisode): void {
    const { rolloutId, outcome, stopReason, failure, reward, counts, userUsage, gateway } = row;
    this.#outcomes[outcome] = (this.#outcomes[outcome] ?? 0) + 1;
    this.#stopReasons[stopReason] = (this.#stopReasons[stopReason] ?? 0) + 1;
    if (failure !== undefined) {
      this.#failures[failure.code] = (this.#failures[failure.code] ?? 0) + 1;
      this.#firstFailure ??= `${rolloutId}: ${failure.message}`;
    }
    for (const { code, message } of row.troubles ?? []) {
      this.#troubles[code] = (this.#troubles[code] ?? 0) + 1;
      this.#firstTrouble ??= `${rolloutId}: ${message}`;
    }
    const reason = unscoredReason(row);
    if (reason !== undefined) this.#unscored[reason] = (this.#unscored[reason] ?? 0) + 1;
    if (reward !== undefined) {
      this.#scored++;
      this.#rewardSum += reward;
    }
    this.#turnCount += counts.turnCount;
    this.#toolCallCount += counts.toolCallCount;
    this.#formatErrorCount += counts.formatErrorCount;
    this.#sampledTokenCount += counts.sampledTokenCount;
    this.#tokenCount += counts.tokenCount;
    this.#userUsage = addSpending(this.#userUsage, userUsage);
    if (gateway !== undefined) (this.#gateway ??= new GatewayCounters()).add(gateway);
    if (row.shared !== undefined) this.#leaveOut(row.shared);
  }

  /** Subtracts the turns that a fork shares. They are counted with the episode that it continues. */
  #leaveOut({ turnCount, toolCallCount, formatErrorCount, userUsage }: SharedCounts): void {
    this.#turnCount -= turnCount;
    this.#toolCallCount -= toolCallCount;
    this.#formatErrorCount -= formatErrorCount;
    this.#userUsage = withoutSpending(this.#userUsage, userUsage);
  }
}
