import { hash } from "node:crypto";
import type { ClientAssistant, ClientMessage } from "../conversation.ts";
import { jsonKey } from "./json-key.ts";

/** How messages are compared. */
export interface KeyRules {
  /** What is taken out of system and user messages before they are compared, and only then. */
  readonly ignore: readonly RegExp[];
}

/**
 * The billing line that Claude Code puts in front of its system prompt: its version, and what the
 * process was started as.
 */
export const defaultIgnore: readonly RegExp[] = [/^x-anthropic-billing-header:[^\n]*\n?/gmu];

/** A message with the key that equal messages share: a digest of what they say. */
export interface KeyedMessage {
  readonly message: ClientMessage;
  /** Place in the request. */
  readonly index: number;
  readonly key: string;
}

/**
 * The messages of a request, ready to be compared: the results of a turn's calls stand in the order of
 * the calls, and are known by it, whatever their ids are.
 */
export function keyMessages(
  messages: readonly ClientMessage[],
  rules: KeyRules,
): { readonly keyed: readonly KeyedMessage[]; readonly reordered: ReadonlySet<number> } {
  const keyed: KeyedMessage[] = [];
  /** Places at which results begin that came in another order. */
  const reordered = new Set<number>();
  let lastTurn: ClientAssistant | undefined;
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    if (message.role !== "tool") {
      if (message.role === "assistant") lastTurn = message;
      keyed.push({ message, index, key: digest(messageKey(message, rules)) });
      continue;
    }
    const end = endOfResults(messages, index);
    const run = orderResults(messages, { start: index, end, turn: lastTurn });
    if (run.some((result, place) => result.index !== index + place)) reordered.add(index);
    keyed.push(...run);
    index = end - 1;
  }
  return { keyed, reordered };
}

function endOfResults(messages: readonly ClientMessage[], start: number): number {
  let end = start;
  while (messages[end]?.role === "tool") end += 1;
  return end;
}

function orderResults(
  messages: readonly ClientMessage[],
  { start, end, turn }: { start: number; end: number; turn: ClientAssistant | undefined },
): readonly KeyedMessage[] {
  const run = [];
  for (let index = start; index < end; index++) {
    const message = messages[index]!;
    if (message.role !== "tool") continue;
    const found = turn?.calls.findIndex(({ id }) => id === message.callId) ?? -1;
    const place = found === -1 ? Infinity : found;
    const name = found === -1 ? message.callId : String(found);
    run.push({ message, index, place, key: digest(textKey(`tool ${name}`, message.content)) });
  }
  return run
    .toSorted((left, right) => left.place - right.place || left.index - right.index)
    .map(({ message, index, key }) => ({ message, index, key }));
}

/** A short text for a long one: equal for equal texts, and never for others. */
export function digest(text: string): string {
  return hash("sha256", text, "base64url");
}

/** Lengths stand in front, so that no text can pass for the end of another. */
function textKey(what: string, text: string): string {
  return `${what} ${text.length}:${text}`;
}

function messageKey(message: Exclude<ClientMessage, { role: "tool" }>, rules: KeyRules): string {
  if (message.role !== "assistant") {
    const { ignore } = rules;
    const text = ignore.reduce((left, pattern) => left.replaceAll(pattern, ""), message.content);
    return textKey(message.role, text);
  }
  const calls = message.calls.map(({ name, argumentsText }) =>
    textKey(textKey("call", name), jsonKey(argumentsText)),
  );
  return textKey(`assistant ${calls.length}`, message.content) + calls.join("");
}
