import { isObject } from "../../values/is-object.ts";
import { isCount, quote, type RawRow } from "../../trajectory/violation.ts";
import { spendingCounts } from "../../user/chat/add-spending.ts";
import type { UserSpending } from "../../user/user.ts";
import { countToolCalls } from "../count-episode.ts";
import type { SharedCounts, TurnRecord } from "../episode.ts";
import type { Play } from "../play.ts";

/** Counts the turns so far, at a fork's first own turn: the turns that the fork shares. */
export function countShared(
  { turns, formatErrorCount }: Pick<Play, "turns" | "formatErrorCount">,
  { callCount, inputTokenCount, outputTokenCount, costUsd }: UserSpending,
): SharedCounts {
  return {
    turnCount: turns.length,
    toolCallCount: countToolCalls(turns),
    formatErrorCount,
    userUsage: {
      callCount,
      inputTokenCount,
      outputTokenCount,
      ...(costUsd !== undefined && { costUsd }),
    },
  };
}

/**
 * Returns what is wrong with an episode's `shared` counts, or `undefined` if nothing is. The episode's counts, user
 * usage and turns must be sound.
 */
export function sharedFault(episode: RawRow): string | undefined {
  const { shared, forkedFrom, turns } = episode;
  if (shared === undefined && forkedFrom === undefined) return undefined;
  if (!isObject(shared) || !isObject(shared["userUsage"])) return `shared is ${quote(shared)}`;
  if (!isObject(forkedFrom)) return "shared is present, but the episode is not a fork";
  const before = (turns as readonly TurnRecord[]).slice(0, forkedFrom["turnIndex"] as number);
  for (const [name, wanted] of [
    ["turnCount", before.length],
    ["toolCallCount", countToolCalls(before)],
  ] as const) {
    if (shared[name] === wanted) continue;
    return `shared.${name} is ${quote(shared[name])}, expected ${wanted} by the turns before the fork`;
  }
  const counts = episode["counts"] as RawRow;
  const userUsage = episode["userUsage"] as RawRow;
  const sharedUsage = shared["userUsage"];
  const { costUsd = 0 } = sharedUsage;
  const { costUsd: totalUsd = 0 } = userUsage;
  const parts: readonly (readonly [name: string, part: unknown, total: unknown])[] = [
    ["formatErrorCount", shared["formatErrorCount"], counts["formatErrorCount"]],
    ...spendingCounts.map(
      (name) => [`userUsage.${name}`, sharedUsage[name], userUsage[name]] as const,
    ),
  ];
  const wrong = parts.find(([, part, total]) => !isCount(part) || part > (total as number));
  if (wrong !== undefined) {
    const [name, part, total] = wrong;
    return `shared.${name} is ${quote(part)}, expected at most the ${quote(total)} of the whole episode`;
  }
  if (typeof costUsd === "number" && costUsd >= 0 && costUsd <= (totalUsd as number)) {
    return undefined;
  }
  return `shared.userUsage.costUsd is ${quote(costUsd)}, expected at most the ${quote(totalUsd)} of the whole episode`;
}
