import { isObject } from "../../values/is-object.ts";
import { isDeepStrictEqual } from "node:util";
import { checkEnd, failureFault } from "../../trajectory/check-end.ts";
import { isCount, quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import { spendingCounts } from "../../user/chat/add-spending.ts";
import { checkTree } from "./check-tree.ts";
import { checkTurnRecords } from "./check-turn-records.ts";
import { countEpisode } from "../count-episode.ts";
import { sharedFault } from "./count-shared.ts";
import type { EpisodeStory } from "../episode.ts";
import { storyShape } from "./story-shape.ts";

const texts = ["rolloutId", "groupId", "taskId", "environment", "split"];
const counts = ["taskIndex", "sampleIndex"];
const sums = ["turnCount", "sampledTokenCount", "tokenCount", "toolCallCount", "formatErrorCount"];
const roles: readonly unknown[] = ["system", "user", "assistant", "tool"];

/**
 * Checks an episode without its ids: its fields, its end, its troubles, its turns and their sums. Runs for episodes of
 * custom players when they arrive, and for those of a run's folder in `verify`. If an episode passes, a run can count
 * it, and a later start can continue from it.
 *
 * @returns all violations, and the episode if its shape is sound.
 */
export function checkStory(row: RawRow): {
  readonly found: Violation[];
  readonly story: (RawRow & EpisodeStory) | undefined;
} {
  const { turns, tree } = row;
  const shape = [
    ...checkFields(row),
    ...checkTurnRecords(turns),
    ...checkMessages(row),
    ...checkTroubles(row),
    ...checkTree(tree, Array.isArray(turns) ? turns : []),
  ];
  const end = checkEnd(row);
  if (shape.length + end.length === 0) shape.push(...checkShape(row));
  const found = [...shape, ...end];
  if (shape.length > 0) return { found, story: undefined };
  const story = row as RawRow & EpisodeStory;
  return { found: [...found, ...checkCounts(story), ...checkShared(story)], story };
}

function checkFields(row: RawRow): Violation[] {
  const { userUsage } = row;
  const { costUsd = 0 } = isObject(userUsage) ? userUsage : {};
  const wrong = [
    ...(row["format"] === 1 ? [] : ["format"]),
    ...texts.filter((field) => typeof row[field] !== "string" || row[field] === ""),
    ...counts.filter((field) => !isCount(row[field])),
    ...(Number.isInteger(row["seed"]) ? [] : ["seed"]),
    ...["startedAtMs", "durationMs"].filter((field) => !Number.isFinite(row[field])),
  ].map((field): readonly [string, unknown] => [field, row[field]]);
  if (!Number.isFinite(costUsd)) wrong.push(["userUsage.costUsd", costUsd]);
  wrong.push(...wrongCounts(row, "counts", sums), ...wrongCounts(row, "userUsage", spendingCounts));
  return wrong.map(([field, value]) => ({
    rule: field === "format" ? "format" : "shape",
    detail: `${field} is ${quote(value)}`,
  }));
}

/** Returns the members of a field that are not counts, with their values. */
function wrongCounts(
  row: RawRow,
  field: string,
  names: readonly string[],
): (readonly [string, unknown])[] {
  const value = row[field];
  if (!isObject(value)) return [[field, value]];
  return names
    .filter((name) => !isCount(value[name]))
    .map((name) => [`${field}.${name}`, value[name]] as const);
}

function checkMessages({ messages }: RawRow): Violation[] {
  if (!Array.isArray(messages)) return [{ rule: "shape", detail: "messages is not a list" }];
  const wrong = messages.findIndex(
    (message: unknown) =>
      !isObject(message) ||
      !roles.includes(message["role"]) ||
      typeof message["content"] !== "string",
  );
  return wrong < 0
    ? []
    : [{ rule: "shape", detail: `messages[${wrong}] has no known role, or no text` }];
}

function checkTroubles({ troubles = [] }: RawRow): Violation[] {
  if (!Array.isArray(troubles)) {
    const detail = `troubles is ${quote(troubles)}, expected a list of failures, or no such field`;
    return [{ rule: "shape", detail }];
  }
  return troubles.flatMap((trouble: unknown, index): Violation[] => {
    const fault = failureFault(trouble);
    return fault === undefined ? [] : [{ rule: "shape", detail: `troubles[${index}]: ${fault}` }];
  });
}

/** Checks the remaining fields. */
function checkShape(row: RawRow): Violation[] {
  const [issue] = storyShape.safeParse(row).error?.issues ?? [];
  if (issue === undefined) return [];
  return [{ rule: "shape", detail: `${issue.path.join(".")}: ${issue.message}` }];
}

function checkShared(story: RawRow): Violation[] {
  const detail = sharedFault(story);
  return detail === undefined ? [] : [{ rule: "counts", detail }];
}

/** Checks the sums that follow from the turns. Sums over ids are checked with the rows. */
function checkCounts(story: EpisodeStory): Violation[] {
  const stated: Readonly<Record<string, unknown>> = { ...story.counts };
  const { formatErrorCount, tokenCount } = story.counts;
  const { forkedFrom, turns } = story;
  const counted = countEpisode(turns, [], formatErrorCount, forkedFrom?.turnIndex);
  const expected = { ...counted, tokenCount };
  const names = new Set([...Object.keys(stated), ...Object.keys(expected)]);
  return [...names].flatMap((name): Violation[] => {
    const wanted = (expected as Readonly<Record<string, unknown>>)[name];
    const isBelow = name !== "formatErrorCount" || formatErrorCount <= turns.length;
    if (isDeepStrictEqual(stated[name], wanted) && isBelow) return [];
    const detail = `counts.${name} is ${quote(stated[name])}, expected ${quote(wanted)} by the turns`;
    return [{ rule: "counts", detail }];
  });
}
