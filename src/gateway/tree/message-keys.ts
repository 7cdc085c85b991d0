import { hash } from "node:crypto";
import type { ClientAssistant, ClientMessage } from "../conversation.ts";
import { ignoredText, type IgnoredText } from "./ignored-text.ts";
import { jsonKey } from "./json-key.ts";

/** How messages are compared. */
export interface KeyRules {
  /** What is taken out of system and user messages before they are compared, and only then. */
  readonly ignore: readonly IgnoredText[];
}

/**
 * Digests of what was said, kept for what is said again with every request: to look a text up costs a
 * fraction of what hashing it does.
 */
export class DigestBook {
  readonly #kept = new Map<string, string>();

  /** A short text for a long one: equal for equal texts, and never for others. */
  digest(text: string): string {
    return this.#kept.get(text) ?? digest(text);
  }

  /** Keeps the digest of a text that is kept anyway, so that this costs no memory for the text. */
  keep(text: string): void {
    if (text.length >= shortLength && !this.#kept.has(text)) this.#kept.set(text, digest(text));
  }
}

/** Shorter texts are hashed as fast as they are looked up. */
const shortLength = 64;

/**
 * The billing line that Claude Code puts in front of its system prompt: its version, and what the
 * process was started as.
 */
export const defaultIgnore: readonly IgnoredText[] = [
  ignoredText(/^x-anthropic-billing-header:[^\n]*\n?/m),
];

/** A message with the key that equal messages share: a digest of what they say. */
export interface KeyedMessage {
  readonly message: ClientMessage;
  /** Place in the request. */
  readonly index: number;
  /** Made when it is asked for first: a turn that was sampled here is not known by it. */
  readonly key: () => string;
}

/**
 * The messages of a request, ready to be compared: the results of a turn's calls stand in the order of
 * the calls, and are known by it, whatever their ids are.
 *
 * @param options - `start` is the first message that is wanted; it is no result.
 */
export function keyMessages(
  messages: readonly ClientMessage[],
  rules: KeyRules,
  options: { readonly book: DigestBook; readonly start?: number },
): { readonly keyed: readonly KeyedMessage[]; readonly reordered: ReadonlySet<number> } {
  const { book, start = 0 } = options;
  const keyed: KeyedMessage[] = [];
  /** Places at which results begin that came in another order. */
  const reordered = new Set<number>();
  let lastTurn: ClientAssistant | undefined;
  for (let index = start; index < messages.length; index++) {
    const message = messages[index]!;
    if (message.role !== "tool") {
      if (message.role === "assistant") lastTurn = message;
      keyed.push({ message, index, key: once(() => messageKey(message, rules, book)) });
      continue;
    }
    const end = endOfResults(messages, index);
    const run = orderResults(messages, { start: index, end, turn: lastTurn, book });
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
  place: {
    readonly start: number;
    readonly end: number;
    readonly turn: ClientAssistant | undefined;
    readonly book: DigestBook;
  },
): readonly KeyedMessage[] {
  const { start, end, turn, book } = place;
  const run = [];
  for (let index = start; index < end; index++) {
    const message = messages[index]!;
    if (message.role !== "tool") continue;
    const found = turn?.calls.findIndex(({ id }) => id === message.callId) ?? -1;
    const rank = found === -1 ? Infinity : found;
    const name = found === -1 ? textKey("id", message.callId) : String(found);
    const key = once(() => `tool ${name} ${book.digest(message.content)};`);
    run.push({ message, index, rank, key });
  }
  return run
    .toSorted((left, right) => left.rank - right.rank || left.index - right.index)
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

function messageKey(
  message: Exclude<ClientMessage, { role: "tool" }>,
  { ignore }: KeyRules,
  book: DigestBook,
): string {
  if (message.role !== "assistant") {
    const text = ignore.reduce((left, each) => each.remove(left), message.content);
    return `${message.role} ${book.digest(text)};`;
  }
  const calls = message.calls.map(({ name, argumentsText }) =>
    textKey(textKey("call", name), jsonKey(argumentsText)),
  );
  const called = digest(calls.join(""));
  return `assistant ${calls.length} ${called} ${book.digest(message.content)};`;
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => (made ??= { value: make() }).value;
}
