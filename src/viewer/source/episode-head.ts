import { isComponent } from "../../environment/reward-parts.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { parseJson, parseStoredRow } from "../../run/folder/episode-row.ts";
import type { Message } from "../../message.ts";
import { isObject } from "../../values/is-object.ts";
import type { EpisodeEntry } from "../model/episode-entry.ts";
import { briefLine, firstReason } from "../model/lists/first-reason.ts";
import { ownSuccess } from "../model/own-success.ts";

const quote = 0x22;
const backslash = 0x5c;
const messagesKey = Buffer.from('"messages":');

/**
 * Reads an episode's entry from the beginning of its line. The counts come before the messages, so long conversations
 * need not be parsed. Returns `undefined` if the beginning does not contain the complete entry.
 */
export function readEpisodeHead(
  head: Buffer,
  order: number,
  successThreshold?: number,
): EpisodeEntry | undefined {
  const end = findMessages(head);
  if (end === undefined) return undefined;
  const text = `${head.toString("utf8", 0, end)}"messages":[]}`;
  const parsed = parseJson(Buffer.from(text)) as Partial<EpisodeRow> | undefined;
  const row = parsed && { ...parsed, messages: readMessages(head, end + messagesKey.length) };
  // Another writer may put the failure later in the line.
  const isWhole = row?.outcome !== "failed" || row.failure !== undefined;
  return isWhole ? toEpisodeEntry(row, order, successThreshold) : undefined;
}

/**
 * Reads an episode's entry from a complete line, with its fields in any order. Returns `undefined`
 * if the line is damaged.
 */
export function readEpisodeLine(
  line: Buffer,
  order: number,
  successThreshold?: number,
): EpisodeEntry | undefined {
  return toEpisodeEntry(parseStoredRow(line), order, successThreshold);
}

/** Finds the key `messages` of the outermost object. */
function findMessages(bytes: Buffer): number | undefined {
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === quote) {
      const isKey = depth === 1 && bytes.subarray(at, at + messagesKey.length).equals(messagesKey);
      if (isKey) return at;
      at = endOfString(bytes, at);
    } else if (byte === 0x7b || byte === 0x5b) depth++;
    else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return undefined;
}

/** Reads the messages up to the first one of the user, as far as the beginning of the line has them. */
function readMessages(head: Buffer, start: number): readonly Message[] {
  const messages: Message[] = [];
  let depth = 0;
  let from = start;
  for (let at = start; at < head.length; at++) {
    const byte = head[at]!;
    if (byte === quote) at = endOfString(head, at);
    else if (byte === 0x7b && depth++ === 0) from = at;
    else if (byte === 0x7d && --depth === 0) {
      const message = parseJson(head.subarray(from, at + 1)) as Message | undefined;
      if (message !== undefined) messages.push(message);
      if (message?.role === "user") return messages;
    } else if (byte === 0x5d && depth === 0) return messages;
  }
  return messages;
}

/** Returns the beginning of the first words of the user. */
function aboutOf(messages: unknown): string | undefined {
  const all = Array.isArray(messages) ? (messages as readonly Partial<Message>[]) : [];
  const content = all.find(({ role }) => role === "user")?.content;
  return typeof content === "string" ? briefLine(content) : undefined;
}

function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

/**
 * Returns an episode's entry. Returns `undefined` for a row without an id or counts.
 *
 * @param successThreshold - The lowest reward of a success. Default: see `ownSuccess()`.
 */
export function toEpisodeEntry(
  row: Partial<Omit<EpisodeRow, "turns">> | undefined,
  order: number,
  successThreshold?: number,
): EpisodeEntry | undefined {
  if (row === undefined || !isSound(row)) return undefined;
  const { rolloutId, counts, outcome, failure, reward, rewardComponents } = row;
  const success = ownSuccess(row, successThreshold);
  const [about, reason] = [aboutOf(row.messages), firstReason({ ...row, success })];
  return {
    order,
    rolloutId,
    groupId: row.groupId ?? rolloutId,
    taskId: row.taskId ?? rolloutId,
    taskIndex: row.taskIndex ?? 0,
    sampleIndex: row.sampleIndex ?? 0,
    ...(row.environment !== undefined && { environment: row.environment }),
    ...(row.split !== undefined && { split: row.split }),
    ...(about !== undefined && { about }),
    outcome: outcome ?? "failed",
    stopReason: row.stopReason ?? "failure",
    ...(reason !== undefined && { reason }),
    ...(reward !== undefined && { reward }),
    ...(success !== undefined && { success }),
    ...(isObject(rewardComponents) && { components: valuesOf(rewardComponents) }),
    ...(failure !== undefined && { party: failure.party, failureCode: failure.code }),
    ...(row.forkedFrom !== undefined && { forkedFrom: row.forkedFrom }),
    // The rows are in another file, which `RunIndex` reads.
    rowCount: 0,
    turnCount: counts.turnCount,
    tokenCount: counts.tokenCount,
    sampledTokenCount: counts.sampledTokenCount,
    toolCallCount: counts.toolCallCount,
    formatErrorCount: counts.formatErrorCount,
    startedAtMs: row.startedAtMs ?? 0,
    durationMs: row.durationMs ?? 0,
  };
}

/** True if the row has an id and counts, and if the members that a list shows have the expected types. */
function isSound<Row extends Partial<Omit<EpisodeRow, "turns">>>(
  row: Row,
): row is Row & Pick<EpisodeRow, "rolloutId" | "counts"> {
  const { taskIndex = 0, sampleIndex = 0, startedAtMs = 0, durationMs = 0, reward = 0 } = row;
  const { rolloutId, groupId = "", taskId = "", environment = "", split = "" } = row;
  const { turnCount, tokenCount, sampledTokenCount, toolCallCount, formatErrorCount } =
    row.counts ?? {};
  const counts = [turnCount, tokenCount, sampledTokenCount, toolCallCount, formatErrorCount];
  const numbers = [...counts, taskIndex, sampleIndex, startedAtMs, durationMs, reward];
  const names = [rolloutId, groupId, taskId, environment, split];
  return numbers.every(Number.isFinite) && names.every((name) => typeof name === "string");
}

/** Returns the values of the valid components. */
function valuesOf(components: Readonly<Record<string, unknown>>): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(components).flatMap(([name, component]) =>
      isComponent(component) ? [[name, component.value]] : [],
    ),
  );
}
