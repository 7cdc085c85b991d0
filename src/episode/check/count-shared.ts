import { isCount, isRow, quote, type RawRow } from "../../trajectory/violation.ts";
import { spendingCounts } from "../../user/chat/add-spending.ts";
import type { UserSpending } from "../../user/user.ts";
import { countToolCalls } from "../count-episode.ts";
import type { SharedCounts, TurnRecord } from "../episode.ts";
import type { Play } from "../play.ts";

/** What a fork has by now, which is what it shares where it is about to part. */
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
 * What is wrong with what an episode says that it shares; nothing where nothing is. Its counts, what its user
 * cost and its turns are sound.
 */
export function sharedFault(episode: RawRow): string | undefined {
  const { shared, forkedFrom, turns } = episode;
  if (shared === undefined && forkedFrom === undefined) return undefined;
  if (!isRow(shared) || !isRow(shared["userUsage"])) return `shared is ${quote(shared)}`;
  if (!isRow(forkedFrom)) return "shared is there, and it parted from none";
  const before = (turns as readonly TurnRecord[]).slice(0, forkedFrom["turnIndex"] as number);
  for (const [name, wanted] of [
    ["turnCount", before.length],
    ["toolCallCount", countToolCalls(before)],
  ] as const) {
    if (shared[name] === wanted) continue;
    return `shared.${name} is ${quote(shared[name])}, expected ${wanted} by the turns before it parted`;
  }
  const counts = episode["counts"] as RawRow;
  const userUsage = episode["userUsage"] as RawRow;
  const sharedUsage = shared["userUsage"];
  const { costUsd = 0 } = sharedUsage;
  const { costUsd: wholeUsd = 0 } = userUsage;
  const parts: readonly (readonly [name: string, part: unknown, whole: unknown])[] = [
    ["formatErrorCount", shared["formatErrorCount"], counts["formatErrorCount"]],
    ...spendingCounts.map(
      (name) => [`userUsage.${name}`, sharedUsage[name], userUsage[name]] as const,
    ),
  ];
  const wrong = parts.find(([, part, whole]) => !isCount(part) || part > (whole as number));
  if (wrong !== undefined) {
    const [name, part, whole] = wrong;
    return `shared.${name} is ${quote(part)}, expected at most the ${quote(whole)} of the whole episode`;
  }
  if (typeof costUsd === "number" && costUsd >= 0 && costUsd <= (wholeUsd as number)) {
    return undefined;
  }
  return `shared.userUsage.costUsd is ${quote(costUsd)}, expected at most the ${quote(wholeUsd)} of the whole episode`;
}
