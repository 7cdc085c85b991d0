import { isObject } from "../../values/is-object.ts";
import type { Intent, Opening, Reading } from "../../agent/agent.ts";
import type { AttemptPlace, TurnForm } from "../../agent/turn-form.ts";
import type { AssistantMessage, Message } from "../../message.ts";
import { isPyDict } from "../../../packages/python-values/src/value.ts";
import { isCount, type RawRow } from "../../trajectory/violation.ts";
import {
  describe,
  refuse,
  requireList,
  requireObject,
  requirePlain,
  requireTools,
  returned,
  type Origin,
} from "./foreign-value.ts";

const roles: readonly unknown[] = ["system", "user", "assistant", "tool"];
const sayFields = ["content"];
const toolFields = ["content", "toolCallId", "name"];
const callFields = ["id", "name", "argumentsText"];
const formFlags = ["leakedMarkup", "thinkingMalformed"];
const messageList = { expected: "a list of messages" };

/**
 * Checks the messages and tools of an agent's first prompt.
 *
 * @throws RolloutError `agent/bad-opening` naming the field.
 */
export function checkOpeningMessages(value: unknown, place: string): Opening {
  const origin: Origin = { code: "agent/bad-opening", place };
  const { messages, tools } = requireObject(value, origin, "an Opening");
  const shown = requireList(messages, origin, { what: "messages is", ...messageList });
  requireTools(tools, origin);
  return { messages: takeMessages(shown, origin), tools: [...(value as Opening).tools] };
}

/**
 * Checks an agent's messages for observations.
 *
 * @throws RolloutError `agent/bad-messages`.
 */
export function checkMessages(value: unknown, place: string): readonly Message[] {
  const origin: Origin = { code: "agent/bad-messages", place };
  const messages = requireList(value, origin, { what: returned, ...messageList });
  if (messages.length === 0) refuse(origin, "it returned an empty list", "at least one message");
  return takeMessages(messages, origin);
}

/**
 * Checks an agent's reading of a turn.
 *
 * @param textLength - Number of characters of the turn's text with its stop token. Attempts lie within it.
 * @throws RolloutError `agent/bad-reading` naming the field.
 */
export function checkReading(value: unknown, place: string, textLength: number): Reading {
  const origin: Origin = { code: "agent/bad-reading", place };
  const reading = requireObject(value, origin, "a Reading");
  const { message, intents, reasoning, attemptCounts, form } = reading;
  const { role } = requireObject(message, origin, "a message");
  if (role !== "assistant") refuse(origin, `message.role is ${describe(role)}`, '"assistant"');
  const said = takeMessage(message, "message", origin) as AssistantMessage;
  const oneIntended = { what: "intents is", expected: "a list with one that is not ignored" };
  const given = requireList(intents, origin, oneIntended);
  if (!given.some(isIntended)) {
    refuse(origin, `intents is ${describe(intents)}`, oneIntended.expected);
  }
  const intended = given.map((intent, index) => takeIntent(intent, `intents[${index}]`, origin));
  if (typeof reasoning !== "string") {
    refuse(origin, `reasoning is ${describe(reasoning)}`, 'a text, "" for no reasoning');
  }
  const counts = requireObject(attemptCounts, origin, "attemptCounts, an object such as {}");
  for (const status of Object.keys(counts)) {
    if (isCount(counts[status])) continue;
    refuse(origin, `attemptCounts.${status} is ${describe(counts[status])}`, "a count");
  }
  return {
    message: said,
    reasoning,
    intents: intended,
    attemptCounts: { ...counts },
    ...(form !== undefined && { form: takeForm(form, origin, textLength) }),
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
 * Returns a checked copy of a message. The episode keeps the copy until the row is written, and the agent may reuse its
 * own object. Members that a class computes are not copied, so the prompt does not have them.
 */
function takeMessage(value: unknown, name: string, origin: Origin): Message {
  if (!isObject(value)) refuse(origin, `${name} is ${describe(value)}`, "a message");
  const { toolCalls } = value;
  const copy: Record<string, unknown> = { ...value };
  if (toolCalls !== undefined) copy["toolCalls"] = takeToolCalls(toolCalls, name, origin);
  requireMessage(copy, name, origin);
  return copy as unknown as Message;
}

function takeToolCalls(value: unknown, name: string, origin: Origin): readonly RawRow[] {
  const what = `${name}.toolCalls is`;
  const calls = requireList(value, origin, { what, expected: "a list or nothing" });
  return calls.map((call, index) => {
    const place = `${name}.toolCalls[${index}]`;
    if (!isObject(call)) refuse(origin, `${place} is ${describe(call)}`, "a tool call");
    const copy = { ...call };
    requireTexts(copy, callFields, { name: place, origin });
    return copy;
  });
}

function requireMessage(value: RawRow, name: string, origin: Origin): void {
  const { role, reasoning } = value;
  if (!roles.includes(role)) {
    const known = roles.map((known) => `"${String(known)}"`).join(", ");
    refuse(origin, `${name}.role is ${describe(role)}`, `one of ${known}`);
  }
  requireTexts(value, role === "tool" ? toolFields : sayFields, { name, origin });
  if (reasoning !== undefined) requireTexts(value, ["reasoning"], { name, origin });
  requirePlain(value, origin, `${name}.`);
}

/** Returns a checked copy of an intent (see `takeMessage()`). */
function takeIntent(given: unknown, name: string, origin: Origin): Intent {
  if (!isObject(given)) refuse(origin, `${name} is ${describe(given)}`, "an intent");
  const { action } = given;
  const copy: Record<string, unknown> = { ...given };
  if (isObject(action)) copy["action"] = copyOfAction(action);
  requireIntent(copy, name, origin);
  return copy as unknown as Intent;
}

function copyOfAction(action: RawRow): RawRow {
  const { arguments: given } = action;
  const copy: Record<string, unknown> = { ...action };
  if (given instanceof Map) copy["arguments"] = new Map(given);
  return copy;
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
  if (!isObject(value)) refuse(origin, `${name} is ${describe(value)}`, "an action");
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

/** Returns a checked copy of a turn's form (see `takeMessage()`). */
function takeForm(given: unknown, origin: Origin, textLength: number): TurnForm {
  const form = requireObject(given, origin, "a form, or nothing");
  const listed = { what: "form.attempts is", expected: "a list" };
  const attempts = requireList(form["attempts"], origin, listed);
  // `Object.assign`, because a spread followed by one more member costs ten times as much on Node 20.
  const copy = Object.assign({ ...form }, { attempts });
  requireForm(copy, origin, textLength);
  const kept = { attempts: (attempts as TurnForm["attempts"]).map(copyOfAttempt) };
  return Object.assign(copy as unknown as TurnForm, kept);
}

function copyOfAttempt({ span, notes, ...rest }: AttemptPlace): AttemptPlace {
  const own = notes === undefined ? {} : { notes: [...notes] };
  return Object.assign(rest, { span: [span[0], span[1]] as const }, own);
}

function requireForm(
  form: RawRow & { readonly attempts: readonly unknown[] },
  origin: Origin,
  textLength: number,
): void {
  const { attempts } = form;
  const wrong = attempts.findIndex(
    (attempt: unknown) =>
      !isObject(attempt) || !isSpan(attempt["span"]) || typeof attempt["status"] !== "string",
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
  for (const flag of formFlags) {
    if (typeof form[flag] === "boolean") continue;
    refuse(origin, `form.${flag} is ${describe(form[flag])}`, "true or false");
  }
}

function isSpan(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && value.every(isCount);
}

/** Requires texts. Builds the error message only for a wrong value, because the check runs for each turn. */
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
