import { RolloutError } from "../../errors.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import { literalPattern } from "../guard/literal-pattern.ts";
import { messageTexts, occurInOrder } from "../message-texts.ts";
import { roleOf } from "../openai-messages.ts";
import { someString } from "../python-strings.ts";
import { userMessage } from "../capability/probe-messages.ts";
import { TemplateError } from "../../../packages/chat-template/src/template-error.ts";

/** The way to render the deltas of one template. */
export interface DeltaPlan {
  /** The history of the rendering: one user message (`short`), or the real history (`full`). */
  readonly base: "short" | "full";
  /** True if the rendering includes the tools. */
  readonly needsTools: boolean;
  /** Literals that end an assistant turn. */
  readonly closers: readonly string[];
}

/** A sampled turn with the messages before and after it. */
export interface TurnChange {
  /** Read only with the full base. */
  readonly history: readonly PyDict[];
  readonly assistant: PyDict;
  readonly environment: readonly PyDict[];
  readonly tools: readonly PyValue[] | null;
}

const shortBase = [userMessage("x")];

/**
 * Returns the text that a template puts after a sampled turn: from the literal that closes the turn to the end of
 * the generation prompt.
 *
 * The template renders the new messages after a stand-in for the sampled turn with a unique word. The delta is the
 * text from the first closing literal after that word. Changes that the template makes earlier cannot affect it.
 *
 * @throws RolloutError `internal/delta` if the template cannot render the messages.
 */
export function renderDeltaText(
  template: BoundTemplate,
  plan: DeltaPlan,
  change: TurnChange,
): string {
  const base = plan.base === "short" ? shortBase : change.history;
  const tools = plan.needsTools ? change.tools : null;
  const nonce = chooseNonce([base, [change.assistant], change.environment, tools]);
  const closers = closerPattern(plan);
  const calls = markedCalls(change.assistant, nonce);
  let refusal: string | undefined;
  // Stand-ins for the sampled turn, the most faithful first: its calls, its calls with a word, the word alone.
  for (let attempt = calls === undefined ? 2 : 0; attempt <= 2; attempt++) {
    const standIn = createStandIn(attempt === 0 ? "" : nonce, attempt === 2 ? undefined : calls);
    const messages = [...base, standIn, ...change.environment];
    let text: string;
    try {
      text = template.render({ messages, tools, addGenerationPrompt: true });
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      if (error.kind === "LimitError") throw undeliverable(error.message);
      refusal ??= error.message;
      continue;
    }
    const at = text.lastIndexOf(nonce);
    if (at < 0) continue;
    closers.lastIndex = at;
    const close = closers.exec(text);
    if (close === null) throw undeliverable("no control token closes the assistant turn");
    const delta = text.slice(close.index);
    const texts: (readonly string[])[] = [];
    for (const message of change.environment) texts.push(messageTexts(message));
    const lost = occurInOrder(delta, texts);
    if (lost === undefined) return delta;
    throw undeliverable(
      `the text of answer ${lost + 1} (role "${roleOf(change.environment[lost] ?? new Map())}") ` +
        "does not appear after the assistant turn",
    );
  }
  throw undeliverable(refusal ?? "the assistant turn does not appear in it");
}

const closerPatterns = new WeakMap<DeltaPlan, RegExp>();

/** The pattern of a plan's closing literals, compiled once. */
function closerPattern(plan: DeltaPlan): RegExp {
  let pattern = closerPatterns.get(plan);
  if (pattern === undefined) {
    pattern = literalPattern(plan.closers);
    closerPatterns.set(plan, pattern);
  }
  return pattern;
}

function createStandIn(content: string, calls: readonly PyValue[] | undefined): PyDict {
  const standIn = new Map<string, PyValue>().set("role", "assistant").set("content", content);
  return calls === undefined ? standIn : standIn.set("tool_calls", calls);
}

/** The calls of a turn with the word in place of their arguments; `undefined` without calls. */
function markedCalls(assistant: PyDict, nonce: string): readonly PyValue[] | undefined {
  const calls = assistant.get("tool_calls");
  return isPyList(calls) && calls.length > 0
    ? calls.map((call) => withNonceArguments(call, nonce))
    : undefined;
}

/** Returns a call with the word in place of its arguments. Other values are unchanged. */
export function withNonceArguments(call: PyValue, nonce: string): PyValue {
  const body = isPyDict(call) ? call.get("function") : undefined;
  if (!isPyDict(call) || !isPyDict(body)) return call;
  const marked = new Map(body).set("arguments", new Map().set("v", nonce));
  return new Map(call).set("function", marked);
}

/** Returns a word that occurs nowhere in the values; the same values give the same word. */
export function chooseNonce(values: readonly (readonly PyValue[] | null)[]): string {
  for (let attempt = 0; ; attempt++) {
    const nonce = `qzkvx${attempt}xvkzq`;
    if (!someString(values, (text) => text.includes(nonce))) return nonce;
  }
}

function undeliverable(why: string): RolloutError {
  return new RolloutError(
    "internal/delta",
    `Cannot render the messages after the sampled turn with this chat template: ${why}`,
  );
}
