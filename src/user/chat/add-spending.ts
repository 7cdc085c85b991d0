import type { UserSpending } from "../user.ts";

/** Talking to users before anyone has said a word. */
export const noSpending: UserSpending = { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 };

/** The counts of a spending, each of which is always there. */
export const spendingCounts = ["callCount", "inputTokenCount", "outputTokenCount"] as const;

/** A spending without a part of it. */
export function withoutSpending(whole: UserSpending, part: UserSpending): UserSpending {
  const { costUsd } = whole;
  return {
    callCount: whole.callCount - part.callCount,
    inputTokenCount: whole.inputTokenCount - part.inputTokenCount,
    outputTokenCount: whole.outputTokenCount - part.outputTokenCount,
    ...(costUsd !== undefined && { costUsd: costUsd - (part.costUsd ?? 0) }),
  };
}

/** What both spendings hold at least. */
export function leastSpending(one: UserSpending, other: UserSpending): UserSpending {
  const costs = [one.costUsd, other.costUsd].filter((costUsd) => costUsd !== undefined);
  return {
    callCount: Math.min(one.callCount, other.callCount),
    inputTokenCount: Math.min(one.inputTokenCount, other.inputTokenCount),
    outputTokenCount: Math.min(one.outputTokenCount, other.outputTokenCount),
    ...(costs.length === 2 && { costUsd: Math.min(...costs) }),
  };
}

/** The sum of two spendings; its cost is that of the calls whose price is known. */
export function addSpending(one: UserSpending, other: UserSpending): UserSpending {
  const costs = [one.costUsd, other.costUsd].filter((costUsd) => costUsd !== undefined);
  return {
    callCount: one.callCount + other.callCount,
    inputTokenCount: one.inputTokenCount + other.inputTokenCount,
    outputTokenCount: one.outputTokenCount + other.outputTokenCount,
    ...(costs.length !== 0 && { costUsd: costs.reduce((sum, costUsd) => sum + costUsd, 0) }),
  };
}
