import type { SharedCounts, TurnRecord } from "../episode/episode.ts";
import type { FailureCode } from "../errors.ts";
import type { OutcomeCounts, StopReason } from "../trajectory/sample.ts";
import { addSpending, noSpending, withoutSpending } from "../user/chat/add-spending.ts";
import type { UserSpending } from "../user/user.ts";
import type { FinishedEpisode } from "./folder/episode-row.ts";
import { unscoredReason, type UnscoredReason } from "./folder/unscored-reason.ts";

/** Where a run stands. JSON-able; also the heart of `summary.json`. */
export interface RunProgress {
  /** Episodes that the run has in all; absent where nobody knows, as in runs without end. */
  readonly planned?: number;
  /** Episodes that are finished, those of earlier starts included. */
  readonly finished: number;
  /** Of these, the ones that an earlier start finished. */
  readonly resumed: number;
  readonly running: number;
  readonly outcomes: Readonly<OutcomeCounts>;
  readonly stopReasons: Readonly<Partial<Record<StopReason, number>>>;
  /** Failed episodes by code. */
  readonly failures: Readonly<Partial<Record<FailureCode, number>>>;
  /** What the first of them says; absent where there are none. */
  readonly firstFailure?: string;
  /** What went wrong in finished episodes and cost them nothing, by code (see `Episode.troubles`). */
  readonly troubles: Readonly<Partial<Record<FailureCode, number>>>;
  /** What the first of these says; absent where there are none. */
  readonly firstTrouble?: string;
  /** Failed attempts that were played again. */
  readonly retried: number;
  /** Episodes that have a reward. */
  readonly scored: number;
  /** Finished episodes without a reward, by why they have none. */
  readonly unscored: Readonly<Partial<Record<UnscoredReason, number>>>;
  /** Mean over the scored episodes; absent where there are none. */
  readonly rewardMean?: number;
  readonly turnCount: number;
  readonly toolCallCount: number;
  readonly formatErrorCount: number;
  /** Ids that the policy sampled: the trained ones. */
  readonly sampledTokenCount: number;
  /** Ids of all rows, trained or not. */
  readonly tokenCount: number;
  /**
   * What the users of the finished episodes cost; attempts that were played again are not in it. What a fork
   * shares is counted once, here and in the counts before.
   */
  readonly userUsage: UserSpending;
  /** Groups that ended since this start: those that were handed out, and those that were not. */
  readonly groups: { readonly finished: number; readonly leftOut: number };
  /**
   * How many versions of the policy old the oldest token of a group was, over the groups that ended since
   * this start; absent where no version is known.
   */
  readonly staleness?: { readonly mean: number; readonly most: number };
  /** What turns have waited for since this start, milliseconds over all episodes. */
  readonly spentMs: {
    readonly engine: number;
    readonly user: number;
    readonly environment: number;
  };
  /** Since this start, milliseconds. */
  readonly elapsedMs: number;
  /** Sampled since this start. */
  readonly sampledTokensPerSecond: number;
}

/** Counts what happens in a run. */
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
  /** Sampled in this start, turn by turn, so that the rate does not wait for episodes to end. */
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

  /** More of them there will be than was thought. */
  plan(planned: number): void {
    this.#planned = planned;
  }

  episodeResumed(row: FinishedEpisode): void {
    this.#resumed++;
    this.#add(row);
  }

  /** Attempts under way. */
  get running(): number {
    return this.#running;
  }

  episodeStarted(): void {
    this.#running++;
  }

  /** The attempt ended without a finished episode. */
  episodeLeft(): void {
    this.#running--;
  }

  attemptRetried(): void {
    this.#retried++;
  }

  turnEnded({ sampledTokenCount, engineMs, userMs = 0, environmentMs }: TurnRecord): void {
    this.#liveTokenCount += sampledTokenCount;
    this.#spentMs.engine += engineMs;
    this.#spentMs.user += userMs;
    this.#spentMs.environment += environmentMs;
  }

  /** A group ended and is handed out. */
  groupFinished(staleness?: number): void {
    this.#groups.finished++;
    this.#addStaleness(staleness);
  }

  /** A group that ended is too old by the time it would be handed out. */
  groupWithdrawn(): void {
    this.#groups.finished--;
    this.#groups.leftOut++;
  }

  /** A group ended and is not handed out. */
  groupLeftOut(staleness?: number): void {
    this.#groups.leftOut++;
    this.#addStaleness(staleness);
  }

  episodeFinished(row: FinishedEpisode): void {
    this.#running--;
    this.#add(row);
  }

  progress(): RunProgress {
    // A clock of somebody's may be set back.
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
    const { rolloutId, outcome, stopReason, failure, reward, counts, userUsage } = row;
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
    if (row.shared !== undefined) this.#leaveOut(row.shared);
  }

  /** What a fork shares is counted with the episode that it parted from. */
  #leaveOut({ turnCount, toolCallCount, formatErrorCount, userUsage }: SharedCounts): void {
    this.#turnCount -= turnCount;
    this.#toolCallCount -= toolCallCount;
    this.#formatErrorCount -= formatErrorCount;
    this.#userUsage = withoutSpending(this.#userUsage, userUsage);
  }
}
