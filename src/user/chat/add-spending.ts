import type { UserSpending } from "../user.ts";

/** The spending before the first call. */
export const noSpending: UserSpending = { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 };

/** The counts that every spending has. */
export const spendingCounts = ["callCount", "inputTokenCount", "outputTokenCount"] as const;

/** Subtracts a part from a spending. */
export function withoutSpending(total: UserSpending, part: UserSpending): UserSpending {
  const { costUsd } = total;
  return {
    callCount: total.callCount - part.callCount,
    inputTokenCount: total.inputTokenCount - part.inputTokenCount,
    outputTokenCount: total.outputTokenCount - part.outputTokenCount,
    ...(costUsd !== undefined && { costUsd: costUsd - (part.costUsd ?? 0) }),
  };
}

/** Returns the smaller of each value of two spendings. */
export function leastSpending(one: UserSpending, other: UserSpending): UserSpending {
  const costs = [one.costUsd, other.costUsd].filter((costUsd) => costUsd !== undefined);
  return {
    callCount: Math.min(one.callCount, other.callCount),
    inputTokenCount: Math.min(one.inputTokenCount, other.inputTokenCount),
    outputTokenCount: Math.min(one.outputTokenCount, other.outputTokenCount),
    ...(costs.length === 2 && { costUsd: Math.min(...costs) }),
  };
}

/** Adds two spendings. The cost covers only the calls with a known price. */
export function addSpending(one: UserSpending, other: UserSpending): UserSpending {
  const costs = [one.costUsd, other.costUsd].filter((costUsd) => costUsd !== undefined);
  return {
    callCount: one.callCount + other.callCount,
    inputTokenCount: one.inputTokenCount + other.inputTokenCount,
    outputTokenCount: one.outputTokenCount + other.outputTokenCount,
    ...(costs.length !== 0 && { costUsd: costs.reduce((sum, costUsd) => sum + costUsd, 0) }),
  };
}
