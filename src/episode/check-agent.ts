import type { Intent, Opening, Reading } from "../agent/agent.ts";
import type { TurnForm } from "../agent/turn-form.ts";
import type { AssistantMessage, Message } from "../message.ts";
import { isPyDict } from "../python/value.ts";
import { isCount, isRow, type RawRow } from "../trajectory/violation.ts";
import {
  describe,
  refuse,
  requireFields,
  requireObject,
  requirePlain,
  requireTools,
  type Origin,
} from "./foreign-value.ts";

const roles: readonly unknown[] = ["system", "user", "assistant", "tool"];
const sayFields = ["content"];
const toolFields = ["content", "toolCallId", "name"];

/**
 * Checks what an agent shows the policy before the first turn.
 *
 * @throws RolloutError `agent/bad-opening` naming the field.
 */
export function checkOpeningMessages(value: unknown, place: string): Opening {
  const origin: Origin = { code: "agent/bad-opening", place };
  const { messages, tools } = requireObject(value, origin, "an Opening");
  if (!Array.isArray(messages)) {
    refuse(origin, `messages is ${describe(messages)}`, "a list of messages");
  }
  requireTools(tools, origin);
  return { messages: takeMessages(messages, origin), tools: [...(value as Opening).tools] };
}

/**
 * Checks how an agent shows what was observed.
 *
 * @throws RolloutError `agent/bad-messages`.
 */
export function checkMessages(value: unknown, place: string): readonly Message[] {
  const origin: Origin = { code: "agent/bad-messages", place };
  if (!Array.isArray(value)) {
    const hint = value === undefined ? " (a forgotten return?)" : "";
    refuse(origin, `it returned ${describe(value)}${hint}`, "a list of messages");
  }
  if (value.length === 0) refuse(origin, "it returned an empty list", "at least one message");
  return takeMessages(value, origin);
}

/**
 * Checks what an agent made of a turn.
 *
 * @param textLength - Characters of the turn's text with its stop: attempts lie within.
 * @throws RolloutError `agent/bad-reading` naming the field.
 */
export function checkReading(value: unknown, place: string, textLength: number): Reading {
  const origin: Origin = { code: "agent/bad-reading", place };
  const reading = requireObject(value, origin, "a Reading");
  const { message, intents, reasoning, attemptCounts, form } = reading;
  const { role } = requireObject(message, origin, "a message");
  if (role !== "assistant") refuse(origin, `message.role is ${describe(role)}`, '"assistant"');
  const said = takeMessage(message, "message", origin) as AssistantMessage;
  if (!Array.isArray(intents) || !intents.some(isIntended)) {
    refuse(origin, `intents is ${describe(intents)}`, "a list with one that is not ignored");
  }
  const intended = intents.map((intent, index) => takeIntent(intent, `intents[${index}]`, origin));
  if (typeof reasoning !== "string") {
    refuse(origin, `reasoning is ${describe(reasoning)}`, 'a text, "" where there is none');
  }
  const counts = requireObject(attemptCounts, origin, "attemptCounts, an object such as {}");
  requireFields(counts, Object.keys(counts), {
    ...origin,
    is: isCount,
    expected: "a count",
    within: "attemptCounts.",
  });
  if (form !== undefined) requireForm(form, origin, textLength);
  return {
    message: said,
    reasoning,
    intents: intended,
    attemptCounts: { ...counts },
    ...(form !== undefined && { form: copyOfForm(form as TurnForm) }),
  };
}

function copyOfForm({ attempts, ...form }: TurnForm): TurnForm {
  return {
    attempts: attempts.map(({ span: [start, end], notes, ...attempt }) => ({
      ...attempt,
      span: [start, end],
      ...(notes !== undefined && { notes: [...notes] }),
    })),
    ...form,
  };
}

function isIntended(intent: unknown): boolean {
  const type = (intent as { type?: unknown } | null)?.type;
  return type === "act" || type === "refuse";
}

function takeMessages(messages: readonly unknown[], origin: Origin): readonly Message[] {
  return messages.map((message, index) => takeMessage(message, `messages[${index}]`, origin));
}

/**
 * A copy that is sound: it stands in the episode until that is written, and whoever gave it may use its objects
 * again. What is not in the copy, such as what a class computes, is not in the prompt either.
 */
function takeMessage(value: unknown, name: string, origin: Origin): Message {
  if (!isRow(value)) refuse(origin, `${name} is ${describe(value)}`, "a message");
  const { toolCalls } = value;
  const calls = Array.isArray(toolCalls) && {
    toolCalls: toolCalls.map((call: unknown) => (isRow(call) ? { ...call } : call)),
  };
  const copy = { ...value, ...calls };
  requireMessage(copy, name, origin);
  return copy as unknown as Message;
}

function requireMessage(value: RawRow, name: string, origin: Origin): void {
  const { role, reasoning, toolCalls } = value;
  if (!roles.includes(role)) {
    const known = roles.map((known) => `"${String(known)}"`).join(", ");
    refuse(origin, `${name}.role is ${describe(role)}`, `one of ${known}`);
  }
  requireTexts(value, role === "tool" ? toolFields : sayFields, { name, origin });
  if (reasoning !== undefined) requireTexts(value, ["reasoning"], { name, origin });
  requirePlain(value, origin, `${name}.`);
  if (toolCalls === undefined) return;
  if (!Array.isArray(toolCalls)) {
    refuse(origin, `${name}.toolCalls is ${describe(toolCalls)}`, "a list or nothing");
  }
  for (const [index, call] of toolCalls.entries()) {
    const place = `${name}.toolCalls[${index}]`;
    if (!isRow(call)) refuse(origin, `${place} is ${describe(call)}`, "a tool call");
    requireTexts(call, ["id", "name", "argumentsText"], { name: place, origin });
  }
}

/** A copy that is sound, as of messages. */
function takeIntent(given: unknown, name: string, origin: Origin): Intent {
  if (!isRow(given)) refuse(origin, `${name} is ${describe(given)}`, "an intent");
  const { action } = given;
  const copy = { ...given, ...(isRow(action) && { action: copyOfAction(action) }) };
  requireIntent(copy, name, origin);
  return copy as unknown as Intent;
}

function copyOfAction(action: RawRow): RawRow {
  const { arguments: given } = action;
  return { ...action, ...(given instanceof Map && { arguments: new Map(given) }) };
}

function requireIntent(value: RawRow, name: string, origin: Origin): void {
  const texts = { name, origin };
  switch (value["type"]) {
    case "act":
      requireTexts(value, ["callId"], texts);
      requireAction(value["action"], `${name}.action`, origin);
      return;
    case "refuse":
      requireTexts(value, ["callId", "name", "observation"], texts);
      return;
    case "ignore":
      requireTexts(value, ["callId", "name"], texts);
      return;
    default:
      refuse(origin, `${name}.type is ${describe(value["type"])}`, '"act", "refuse" or "ignore"');
  }
}

function requireAction(value: unknown, name: string, origin: Origin): void {
  if (!isRow(value)) refuse(origin, `${name} is ${describe(value)}`, "an action");
  const texts = { name, origin };
  if (value["type"] === "say") {
    requireTexts(value, ["content"], texts);
    return;
  }
  if (value["type"] !== "call") {
    refuse(origin, `${name}.type is ${describe(value["type"])}`, '"say" or "call"');
  }
  requireTexts(value, ["name"], texts);
  const { arguments: given } = value;
  if (!isPyDict(given as never)) {
    refuse(origin, `${name}.arguments is ${describe(given)}`, "a Map");
  }
}

function requireForm(form: unknown, origin: Origin, textLength: number): void {
  const { attempts, ...flags } = requireObject(form, origin, "a form, or nothing");
  if (!Array.isArray(attempts)) {
    refuse(origin, `form.attempts is ${describe(attempts)}`, "a list");
  }
  const wrong = attempts.findIndex(
    (attempt: unknown) =>
      !isRow(attempt) || !isSpan(attempt["span"]) || typeof attempt["status"] !== "string",
  );
  if (wrong >= 0) {
    const what = `form.attempts[${wrong}] is ${describe(attempts[wrong])}`;
    refuse(origin, what, "an attempt with its span and status");
  }
  for (const [index, attempt] of attempts.entries()) {
    requirePlain(attempt as object, origin, `form.attempts[${index}].`);
    const [start, end] = (attempt as { readonly span: readonly [number, number] }).span;
    if (start <= end && end <= textLength) continue;
    const what = `form.attempts[${index}].span is ${start} to ${end}`;
    refuse(origin, what, `a stretch of the ${textLength} characters that were sampled`);
  }
  requireFields(flags, ["leakedMarkup", "thinkingMalformed"], {
    ...origin,
    is: (flag) => typeof flag === "boolean",
    expected: "true or false",
    within: "form.",
  });
}

function isSpan(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && value.every(isCount);
}

/** Runs for each turn, so nothing is made unless something is wrong. */
function requireTexts(
  value: Readonly<Record<string, unknown>>,
  fields: readonly string[],
  { name, origin }: { readonly name: string; readonly origin: Origin },
): void {
  for (const field of fields) {
    if (typeof value[field] === "string") continue;
    refuse(origin, `${name}.${field} is ${describe(value[field])}`, "a text");
  }
}
