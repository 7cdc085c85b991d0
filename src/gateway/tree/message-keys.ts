import { once } from "../../values/once.ts";
import { hash } from "node:crypto";
import type { ClientMessage } from "../conversation.ts";
import { ignoredText, type IgnoredText } from "./ignored-text.ts";
import { jsonKey } from "./json-key.ts";
import { ResultFinder, type CallPlace } from "./result-finder.ts";
import type { PlacementNote } from "./turn-node.ts";

/** Rules for comparing messages. */
export interface KeyRules {
  /** Text that is ignored in system and user messages. */
  readonly ignore: readonly IgnoredText[];
}

/** Caches digests of texts that are kept in memory anyway. A lookup is much faster than hashing. */
export class DigestCache {
  readonly #kept = new Map<string, string>();

  /** Returns the text's digest. Different texts have different digests. */
  digest(text: string): string {
    return this.#kept.get(text) ?? digest(text);
  }

  /** Caches the digest of a text that is kept elsewhere. */
  keep(text: string): void {
    if (text.length >= shortLength && !this.#kept.has(text)) this.#kept.set(text, digest(text));
  }
}

/** Texts below this length are hashed as fast as they are looked up. */
const shortLength = 64;

/**
 * Claude Code's billing line in the system prompt, which contains its version and entry point, and differs between
 * requests.
 */
export const billingLine = /^x-anthropic-billing-header:[^\n]*\n?/gm;

export const defaultIgnore: readonly IgnoredText[] = [ignoredText(billingLine)];

/** A message with a key that equal messages share. */
export interface KeyedMessage {
  readonly message: ClientMessage;
  /** Index in the request. */
  readonly index: number;
  /** Computed on demand, because a sampled turn is recognised without it. */
  readonly key: () => string;
  /** The call that this result answers. Absent for other messages. */
  readonly answers?: CallPlace;
  /** True for a result with an id that no call has. It is assigned to a call without a result. */
  readonly isOrphan?: true;
  /** True for a second result of a call. */
  readonly isSecond?: true;
}

/** An anomaly between two turns. */
interface Anomaly {
  /** Index of the first message between them. */
  readonly index: number;
  readonly note: PlacementNote;
}

/**
 * Prepares a request's messages for comparison. Results move directly after their turn, in the
 * order of the calls, and their keys identify the call by position instead of id.
 *
 * @param options - `start` is the index of the first message to return: an assistant turn or 0.
 */
export function keyMessages(
  messages: readonly ClientMessage[],
  rules: KeyRules,
  options: { readonly digests: DigestCache; readonly start?: number },
): { readonly keyed: readonly KeyedMessage[]; readonly anomalies: readonly Anomaly[] } {
  const { digests, start = 0 } = options;
  const keyed: KeyedMessage[] = [];
  const anomalies: Anomaly[] = [];
  const finder = new ResultFinder(messages, start);
  let index = start;
  while (index < messages.length) {
    const message = messages[index]!;
    if (message.role === "assistant") {
      finder.addTurn(message, index);
      keyed.push({ message, index, key: once(() => messageKey(message, rules, digests)) });
      index += 1;
      continue;
    }
    const end = nextAssistantIndex(messages, index);
    const ordered = orderMessages(messages, { start: index, end, finder, rules, digests });
    if (ordered.some((each, place) => each.index < (ordered[place - 1]?.index ?? 0)))
      anomalies.push({ index, note: "results-reordered" });
    if (ordered.some((each) => each.isOrphan === true))
      anomalies.push({ index, note: "result-without-call" });
    if (ordered.some((each) => each.isSecond === true))
      anomalies.push({ index, note: "second-result" });
    if (finder.hasOpen) anomalies.push({ index, note: "call-without-result" });
    for (const each of ordered) keyed.push(each);
    index = end;
  }
  return { keyed, anomalies };
}

function nextAssistantIndex(messages: readonly ClientMessage[], start: number): number {
  let end = start;
  while (end < messages.length && messages[end]!.role !== "assistant") end += 1;
  return end;
}

/**
 * Orders the messages between two turns: first results of their calls, then the others in their order. Of several
 * results for one call, only the last is kept: a client may send a placeholder first.
 */
function orderMessages(
  messages: readonly ClientMessage[],
  options: {
    readonly start: number;
    readonly end: number;
    readonly finder: ResultFinder;
    readonly rules: KeyRules;
    readonly digests: DigestCache;
  },
): readonly KeyedMessage[] {
  const { start, end, finder, rules, digests } = options;
  const results: (KeyedMessage & { readonly answers: CallPlace })[] = [];
  /** The indexes in `results`, by the names of the calls. */
  const places = new Map<string, number>();
  const orphans: KeyedMessage[] = [];
  const others: KeyedMessage[] = [];
  for (let index = start; index < end; index++) {
    const message = messages[index]!;
    if (message.role !== "tool") {
      others.push({ message, index, key: once(() => messageKey(message, rules, digests)) });
      continue;
    }
    const found = finder.find(message.callId);
    const name = found?.name ?? textKey("id", message.callId);
    const key = once(() => `tool ${name} ${digests.digest(message.content)};`);
    if (found === undefined) orphans.push({ message, index, key, isOrphan: true });
    else if (found.isFirst) {
      places.set(name, results.length);
      results.push({ message, index, key, answers: found });
    } else {
      const again = { message, index, key, answers: found, isSecond: true } as const;
      const earlier = places.get(name);
      if (earlier === undefined) others.push(again);
      else results[earlier] = again;
    }
  }
  // The template pairs them with these calls in order.
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

/** Returns the text's hash. Different texts have different hashes. */
export function digest(text: string): string {
  return hash("sha256", text, "base64url");
}

/** Prefixes lengths, so that concatenated keys are unambiguous. */
function textKey(what: string, text: string): string {
  return `${what} ${text.length}:${text}`;
}

function messageKey(
  message: Exclude<ClientMessage, { role: "tool" }>,
  { ignore }: KeyRules,
  digests: DigestCache,
): string {
  if (message.role !== "assistant") {
    const text = ignore.reduce((left, each) => each.remove(left), message.content);
    return `${message.role} ${digests.digest(text)};`;
  }
  const calls = message.calls.map(({ name, argumentsText }) =>
    textKey(textKey("call", name), jsonKey(argumentsText)),
  );
  const called = digest(calls.join(""));
  return `assistant ${calls.length} ${called} ${digests.digest(message.content)};`;
}
