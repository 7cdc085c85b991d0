import { hash } from "node:crypto";
import type { ClientMessage } from "../conversation.ts";
import { ignoredText, type IgnoredText } from "./ignored-text.ts";
import { jsonKey } from "./json-key.ts";
import { ResultFinder, type CallPlace } from "./result-finder.ts";
import type { PlacementNote } from "./turn-node.ts";

/** How messages are compared. */
export interface KeyRules {
  /** What is taken out of system and user messages before they are compared, and only then. */
  readonly ignore: readonly IgnoredText[];
}

/**
 * Digests of what was said, kept for what is said again with every request: to look a text up costs a
 * fraction of what hashing it does.
 */
export class DigestCache {
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
  /** The call that it is a result of; absent where it is none. */
  readonly answers?: CallPlace;
  /** True for a result whose id no call has: it is taken for that of a call without a result. */
  readonly isOrphan?: true;
}

/** Something that was noticed between two turns. */
interface NotedPlace {
  /** Place of the first message between them. */
  readonly index: number;
  readonly note: PlacementNote;
}

/**
 * The messages of a request, ready to be compared. The results of calls stand right after the turn that
 * they follow, in the order of the calls, and are known by these, not by their ids.
 *
 * @param options - `start` is the first message that is wanted: a turn of the assistant, or the first of all.
 */
export function keyMessages(
  messages: readonly ClientMessage[],
  rules: KeyRules,
  options: { readonly book: DigestCache; readonly start?: number },
): { readonly keyed: readonly KeyedMessage[]; readonly noted: readonly NotedPlace[] } {
  const { book, start = 0 } = options;
  const keyed: KeyedMessage[] = [];
  const noted: NotedPlace[] = [];
  const finder = new ResultFinder(messages, start);
  let index = start;
  while (index < messages.length) {
    const message = messages[index]!;
    if (message.role === "assistant") {
      finder.addTurn(message, index);
      keyed.push({ message, index, key: once(() => messageKey(message, rules, book)) });
      index += 1;
      continue;
    }
    const end = endOfStretch(messages, index);
    const stretch = orderStretch(messages, { start: index, end, finder, rules, book });
    const isReordered = stretch.some((each, place) => each.index !== index + place);
    if (isReordered) noted.push({ index, note: "results-reordered" });
    if (stretch.some((each) => each.isOrphan === true))
      noted.push({ index, note: "result-without-call" });
    if (finder.hasOpen) noted.push({ index, note: "call-without-result" });
    for (const each of stretch) keyed.push(each);
    index = end;
  }
  return { keyed, noted };
}

function endOfStretch(messages: readonly ClientMessage[], start: number): number {
  let end = start;
  while (end < messages.length && messages[end]!.role !== "assistant") end += 1;
  return end;
}

/** The messages between two turns: first results of calls come first, all others stay in their order. */
function orderStretch(
  messages: readonly ClientMessage[],
  options: {
    readonly start: number;
    readonly end: number;
    readonly finder: ResultFinder;
    readonly rules: KeyRules;
    readonly book: DigestCache;
  },
): readonly KeyedMessage[] {
  const { start, end, finder, rules, book } = options;
  const results: (KeyedMessage & { readonly answers: CallPlace })[] = [];
  const orphans: KeyedMessage[] = [];
  const others: KeyedMessage[] = [];
  for (let index = start; index < end; index++) {
    const message = messages[index]!;
    if (message.role !== "tool") {
      others.push({ message, index, key: once(() => messageKey(message, rules, book)) });
      continue;
    }
    const found = finder.find(message.callId);
    const name = found?.name ?? textKey("id", message.callId);
    const key = once(() => `tool ${name} ${book.digest(message.content)};`);
    if (found === undefined) orphans.push({ message, index, key, isOrphan: true });
    else if (found.isFirst) results.push({ message, index, key, answers: found });
    else others.push({ message, index, key, answers: found });
  }
  // The template takes them for the results of these calls, one by one.
  const open = orphans.length === 0 ? [] : finder.open;
  orphans.forEach((orphan, place) => {
    const call = open[place];
    if (call === undefined) others.push(orphan);
    else results.push({ ...orphan, answers: call });
  });
  if (orphans.length > open.length) others.sort((left, right) => left.index - right.index);
  results.sort(
    ({ answers: left }, { answers: right }) => left.at - right.at || left.place - right.place,
  );
  return [...results, ...others];
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
  book: DigestCache,
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
