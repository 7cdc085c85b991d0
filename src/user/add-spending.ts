import type { UserSpending } from "./user.ts";

/** Talking to users before anyone has said a word. */
export const noSpending: UserSpending = { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 };

/** The sum of two spendings; its cost is that of the calls whose price is known. */
export function addSpending(one: UserSpending, other: UserSpending): UserSpending {
  const costs = [one.costUsd, other.costUsd].filter((costUsd) => costUsd !== undefined);
  return {
    callCount: one.callCount + other.callCount,
    inputTokenCount: one.inputTokenCount + other.inputTokenCount,
    outputTokenCount: one.outputTokenCount + other.outputTokenCount,
    ...(costs.length === 0 ? {} : { costUsd: costs.reduce((sum, costUsd) => sum + costUsd, 0) }),
  };
}
