import { isDeepStrictEqual } from "node:util";
import { countEpisode } from "../episode/count-episode.ts";
import { sharedFault } from "../episode/count-shared.ts";
import type { TurnRecord } from "../episode/episode.ts";
import type { EpisodeRow } from "../run/run-folder.ts";
import { spendingCounts } from "../user/add-spending.ts";
import { checkTree } from "./check-tree.ts";
import { checkEnd } from "../trajectory/check-end.ts";
import { isCount, isRow, quote, type RawRow, type Violation } from "../trajectory/violation.ts";

const texts = ["rolloutId", "groupId", "taskId", "environment", "split"];
const counts = ["taskIndex", "sampleIndex"];
const roles: readonly unknown[] = ["system", "user", "assistant", "tool"];

/**
 * Checks an episode's line for itself: its fields, its end, its turns and the sums over them, and that
 * it keeps the hashes of its training rows.
 */
export function checkEpisode(row: unknown): {
  found: Violation[];
  episode: EpisodeRow | undefined;
} {
  if (!isRow(row)) {
    const detail = "the line is not a JSON object";
    return { found: [{ rule: "shape", detail }], episode: undefined };
  }
  const { turns, tree } = row;
  const shape = [
    ...checkFields(row),
    ...checkTurnRecords(turns),
    ...checkMessages(row),
    ...checkTree(tree, Array.isArray(turns) ? turns : []),
  ];
  const found = [...shape, ...checkEnd(row), ...checkSampleHashes(row)];
  if (shape.length > 0) return { found, episode: undefined };
  const episode = row as RawRow & EpisodeRow;
  return { found: [...found, ...checkCounts(episode), ...checkShared(episode)], episode };
}

function checkFields(row: RawRow): Violation[] {
  const wrong = [
    ...(row["format"] === 1 || row["format"] === 2 ? [] : ["format"]),
    ...texts.filter((field) => typeof row[field] !== "string" || row[field] === ""),
    ...counts.filter((field) => !isCount(row[field])),
    ...(Number.isInteger(row["seed"]) ? [] : ["seed"]),
    ...(areCounts(row["counts"], ["formatErrorCount", "tokenCount"]) ? [] : ["counts"]),
    ...(areCounts(row["userUsage"], spendingCounts) ? [] : ["userUsage"]),
  ];
  return wrong.map((field) => ({
    rule: field === "format" ? "format" : "shape",
    detail: `${field} is ${quote(row[field])}`,
  }));
}

function areCounts(value: unknown, names: readonly string[]): boolean {
  return isRow(value) && names.every((name) => isCount(value[name]));
}

function checkMessages({ messages }: RawRow): Violation[] {
  if (!Array.isArray(messages)) return [{ rule: "shape", detail: "messages is no list" }];
  const wrong = messages.findIndex(
    (message: unknown) =>
      !isRow(message) || !roles.includes(message["role"]) || typeof message["content"] !== "string",
  );
  return wrong < 0
    ? []
    : [{ rule: "shape", detail: `messages[${wrong}] has no known role, or no text` }];
}

function checkTurnRecords(turns: unknown): Violation[] {
  if (!Array.isArray(turns)) return [{ rule: "shape", detail: "turns is no list" }];
  return turns.flatMap((turn: unknown, index) => {
    const place = `turns[${index}]`;
    if (!isRow(turn)) return [{ rule: "shape", detail: `${place} is no object` }];
    const isShaped =
      typeof turn["text"] === "string" &&
      isCount(turn["sampledTokenCount"]) &&
      isCount(turn["promptTokenCount"]) &&
      isRow(turn["attemptCounts"]) &&
      Object.values(turn["attemptCounts"]).every(isCount) &&
      Array.isArray(turn["steps"]) &&
      turn["steps"].every(isRow) &&
      isFormat(turn["format"]);
    if (!isShaped) return [{ rule: "shape", detail: `${place} is not the record of a turn` }];
    if (turn["turnIndex"] !== index) {
      const detail = `${place}.turnIndex is ${quote(turn["turnIndex"])}, expected ${index}`;
      return [{ rule: "turn-index", detail }];
    }
    return checkAttempts(turn as RawRow & TurnRecord, place);
  });
}

/** Whether a value can be what a record says of its turn's form. */
function isFormat(format: unknown): boolean {
  if (format === undefined) return true;
  if (!isRow(format)) return false;
  const { firstError } = format;
  return (
    firstError === undefined || (isRow(firstError) && isWithin(firstError["tokenSpan"], Infinity))
  );
}

/** Attempts lie within the text and the ids of their turn. */
function checkAttempts(turn: RawRow & TurnRecord, place: string): Violation[] {
  const { attempts = [], text, sampledTokenCount } = turn;
  if (!Array.isArray(attempts)) return [{ rule: "shape", detail: `${place}.attempts is no list` }];
  return attempts.flatMap((attempt: unknown, index): Violation[] => {
    const { span, tokenSpan } = isRow(attempt) ? attempt : {};
    const isPlaced = isWithin(span, text.length) || isClosedByStop(span, tokenSpan, turn);
    if (isPlaced && isWithin(tokenSpan, sampledTokenCount)) return [];
    const detail =
      `${place}.attempts[${index}] is ${quote(span)} of ${text.length} characters and ` +
      `${quote(tokenSpan)} of ${sampledTokenCount} ids`;
    return [{ rule: "attempts", detail }];
  });
}

/** The stop that ends a turn closes the call before it in some formats, and is not in the text. */
function isClosedByStop(
  span: unknown,
  tokenSpan: unknown,
  { text, finish, sampledTokenCount }: TurnRecord,
): boolean {
  if (finish !== "stop" || !isWithin(span, Infinity) || !isWithin(tokenSpan, Infinity)) {
    return false;
  }
  return span[0] <= text.length && tokenSpan[1] === sampledTokenCount;
}

function isWithin(span: unknown, length: number): span is readonly [number, number] {
  if (!Array.isArray(span) || span.length !== 2 || !span.every(isCount)) return false;
  const [start, end] = span as [number, number];
  return start <= end && end <= length;
}

function checkSampleHashes({ sampleHashes }: RawRow): Violation[] {
  const isList = Array.isArray(sampleHashes);
  if (
    isList &&
    sampleHashes.every((hash) => typeof hash === "string" && /^[0-9a-f]{64}$/.test(hash))
  )
    return [];
  const detail = `sampleHashes is ${quote(sampleHashes)}, expected the hashes of the rows of samples`;
  return [{ rule: "hashes", detail }];
}

function checkShared(episode: RawRow): Violation[] {
  const detail = sharedFault(episode);
  return detail === undefined ? [] : [{ rule: "counts", detail }];
}

/** The sums that follow from the turns; those over the ids wait for the rows of samples. */
function checkCounts(episode: EpisodeRow): Violation[] {
  const stated: Readonly<Record<string, unknown>> = { ...episode.counts };
  const { formatErrorCount, tokenCount } = episode.counts;
  const { forkedFrom, turns } = episode;
  const counted = countEpisode(turns, [], formatErrorCount, forkedFrom?.turnIndex);
  const expected = { ...counted, tokenCount };
  const names = new Set([...Object.keys(stated), ...Object.keys(expected)]);
  return [...names].flatMap((name): Violation[] => {
    const wanted = (expected as Readonly<Record<string, unknown>>)[name];
    const isBelow = name !== "formatErrorCount" || formatErrorCount <= episode.turns.length;
    if (isDeepStrictEqual(stated[name], wanted) && isBelow) return [];
    const detail = `counts.${name} is ${quote(stated[name])}, expected ${quote(wanted)} by the turns`;
    return [{ rule: "counts", detail }];
  });
}
