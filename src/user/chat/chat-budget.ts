import { UsageError } from "../../errors.ts";
import { ChatFailure } from "../../engine/chat/chat-failure.ts";

/** Prices of a chat model's tokens, in US dollars per million tokens. */
export interface ChatPrices {
  readonly inputUsd: number;
  readonly outputUsd: number;
  /** Price of input that the server had cached. Default: `inputUsd`. */
  readonly cachedInputUsd?: number;
}

/** Limits for the sum of all calls of a chat model. */
export interface ChatBudget {
  /** Maximum sum of input and output tokens. */
  readonly maxTokenCount?: number;
  /** Maximum cost in US dollars. Requires prices. */
  readonly maxCostUsd?: number;
}

/** The usage of one reply, as the server reports it. */
export interface ChatUsage {
  /** Includes cached input. */
  readonly inputTokenCount: number;
  readonly cachedInputTokenCount: number;
  readonly outputTokenCount: number;
}

/** The spending of a chat model. JSON-able. */
export interface ChatSpending {
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** The cost in US dollars. Absent if no price is known. */
  readonly costUsd?: number;
}

/** Sums the usage of calls, and refuses calls after the budget is spent. */
export interface BudgetMeter {
  /**
   * Checks the budget before a call. Calls in progress can exceed it.
   *
   * @throws ChatFailure `budget` if the budget is spent.
   */
  assertLeft(): void;
  /**
   * Adds the usage of one reply, or `null` if the server reported none. Returns the reply's price.
   *
   * @throws ChatFailure `bad-reply` if a budget is set and the usage is `null`.
   */
  add(usage: ChatUsage | null): number | undefined;
  spent(): ChatSpending;
}

/**
 * Creates a meter without spending.
 *
 * @throws UsageError for a budget in dollars without prices.
 */
export function createBudgetMeter({
  budget = {},
  prices,
}: {
  readonly budget?: ChatBudget | undefined;
  readonly prices?: ChatPrices | undefined;
}): BudgetMeter {
  const { maxTokenCount = Infinity, maxCostUsd = Infinity } = budget;
  if (maxCostUsd !== Infinity && prices === undefined) {
    throw new UsageError("Cannot enforce `budget.maxCostUsd`: `prices` is absent, expected prices");
  }
  let inputTokenCount = 0;
  let outputTokenCount = 0;
  let costUsd = 0;
  return {
    assertLeft() {
      const tokenCount = inputTokenCount + outputTokenCount;
      if (tokenCount >= maxTokenCount) {
        const message = `${tokenCount} tokens are used of a budget of ${maxTokenCount}`;
        throw new ChatFailure("budget", message);
      }
      if (costUsd >= maxCostUsd) {
        throw new ChatFailure("budget", `$${costUsd} is spent of a budget of $${maxCostUsd}`);
      }
    },
    add(usage) {
      if (usage === null) {
        if (maxTokenCount === Infinity && maxCostUsd === Infinity) return undefined;
        throw new ChatFailure(
          "bad-reply",
          "the reply reports no token usage, which the budget requires",
        );
      }
      inputTokenCount += usage.inputTokenCount;
      outputTokenCount += usage.outputTokenCount;
      if (prices === undefined) return undefined;
      const price = priceOf(usage, prices);
      costUsd += price;
      return price;
    },
    spent: () => ({
      inputTokenCount,
      outputTokenCount,
      ...(prices !== undefined && { costUsd }),
    }),
  };
}

function priceOf(usage: ChatUsage, prices: ChatPrices): number {
  const { inputUsd, outputUsd, cachedInputUsd = inputUsd } = prices;
  const freshTokenCount = usage.inputTokenCount - usage.cachedInputTokenCount;
  const micros =
    freshTokenCount * inputUsd +
    usage.cachedInputTokenCount * cachedInputUsd +
    usage.outputTokenCount * outputUsd;
  return micros / 1e6;
}
