import { isObject } from "../../values/is-object.ts";
import { isCount, quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import type { TurnRecord } from "../episode.ts";

/** Checks each turn record of an episode: its fields, its index and its attempts. */
export function checkTurnRecords(turns: unknown): Violation[] {
  if (!Array.isArray(turns)) return [{ rule: "shape", detail: "turns is not a list" }];
  return turns.flatMap((turn: unknown, index) => {
    const place = `turns[${index}]`;
    if (!isObject(turn)) return [{ rule: "shape", detail: `${place} is not an object` }];
    const wrong = members.find(([name, is]) => !is(turn[name]));
    if (wrong !== undefined) {
      const [name] = wrong;
      const detail = `${place} is not the record of a turn: its ${name} is ${quote(turn[name])}`;
      return [{ rule: "shape", detail }];
    }
    if (turn["turnIndex"] !== index) {
      const detail = `${place}.turnIndex is ${quote(turn["turnIndex"])}, expected ${index}`;
      return [{ rule: "turn-index", detail }];
    }
    return checkAttempts(turn as RawRow & TurnRecord, place);
  });
}

const members: readonly (readonly [name: string, is: (value: unknown) => boolean])[] = [
  ["text", (text) => typeof text === "string"],
  ["sampledTokenCount", isCount],
  ["promptTokenCount", isCount],
  ["attemptCounts", (counts) => isObject(counts) && Object.values(counts).every(isCount)],
  ["steps", (steps) => Array.isArray(steps) && steps.every(isObject)],
  ["format", isFormat],
];

/** True if the value is a valid `format` of a turn record. */
function isFormat(format: unknown): boolean {
  if (format === undefined) return true;
  if (!isObject(format) || typeof format["formatOk"] !== "boolean") return false;
  const { firstError } = format;
  return (
    firstError === undefined ||
    (isObject(firstError) && isWithin(firstError["tokenSpan"], Infinity))
  );
}

/** Checks that attempts lie within the text and the ids of their turn. */
function checkAttempts(turn: RawRow & TurnRecord, place: string): Violation[] {
  const { attempts = [], text, sampledTokenCount } = turn;
  if (!Array.isArray(attempts))
    return [{ rule: "shape", detail: `${place}.attempts is not a list` }];
  return attempts.flatMap((attempt: unknown, index): Violation[] => {
    const { span, tokenSpan } = isObject(attempt) ? attempt : {};
    const isPlaced = isWithin(span, text.length) || isClosedByStop(span, tokenSpan, turn);
    if (isPlaced && isWithin(tokenSpan, sampledTokenCount)) return [];
    const detail =
      `${place}.attempts[${index}] is ${quote(span)} of ${text.length} characters and ` +
      `${quote(tokenSpan)} of ${sampledTokenCount} ids`;
    return [{ rule: "attempts", detail }];
  });
}

/**
 * True if the attempt ends with the turn's stop token. In some formats that token closes a call, and it is not part of
 * the text.
 */
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
