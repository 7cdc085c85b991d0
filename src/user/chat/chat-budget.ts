import { UsageError } from "../../errors.ts";
import { ChatFailure } from "./chat-failure.ts";

/** What a chat model's tokens cost, in US dollars per million tokens. */
export interface ChatPrices {
  readonly inputUsd: number;
  readonly outputUsd: number;
  /** For input that the server had cached. Default: as `inputUsd`. */
  readonly cachedInputUsd?: number;
}

/** How much a chat model may take in all its calls together. */
export interface ChatBudget {
  /** Input and output tokens together. */
  readonly maxTokenCount?: number;
  /** In US dollars; needs prices. */
  readonly maxCostUsd?: number;
}

/** What one reply took, as the server counts it. */
export interface ChatUsage {
  /** Cached input included. */
  readonly inputTokenCount: number;
  readonly cachedInputTokenCount: number;
  readonly outputTokenCount: number;
}

/** What a chat model has taken so far. JSON-able. */
export interface ChatSpending {
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** In US dollars; absent where no price is known. */
  readonly costUsd?: number;
}

/** Adds up what calls took, and refuses further ones once the budget is spent. */
export interface BudgetMeter {
  /**
   * Calls in progress are not foreseen: the budget can be passed by what they take.
   *
   * @throws ChatFailure `budget` where nothing is left.
   */
  assertLeft(): void;
  /**
   * Adds one reply; `null` where the server reported no usage. Returns the reply's price.
   *
   * @throws ChatFailure `bad-reply` where a budget is set and there is nothing to hold against it.
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
    throw new UsageError("Cannot keep to `budget.maxCostUsd`: `prices` is absent, expected prices");
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
        throw new ChatFailure("bad-reply", "the reply reports no token usage to hold to a budget");
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
