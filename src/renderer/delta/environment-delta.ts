import { RolloutError } from "../../errors.ts";
import type { PyDict, PyValue } from "../../python/value.ts";
import { isPyDict, isPyList } from "../../python/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import { literalPattern } from "../guard/literal-pattern.ts";
import { messageTexts, occurInOrder } from "../message-texts.ts";
import { roleOf } from "../openai-messages.ts";
import { someString } from "../python-strings.ts";
import { userMessage } from "../capability/probe-messages.ts";
import { TemplateError } from "../../jinja/template-error.ts";

/** How the delta of one template is rendered. */
export interface DeltaPlan {
  /** What stands for the history: one user message, or the history itself. */
  readonly base: "short" | "full";
  /** Whether the tools are rendered along. */
  readonly needsTools: boolean;
  /** Literals that end an assistant turn. */
  readonly closers: readonly string[];
}

/** A sampled turn, what came before it and what follows. */
export interface TurnChange {
  /** Read only with the full base. */
  readonly history: readonly PyDict[];
  readonly assistant: PyDict;
  readonly environment: readonly PyDict[];
  readonly tools: readonly PyValue[] | null;
}

const shortBase = [userMessage("x")];

/**
 * The text that a template puts after a sampled turn: from the literal that closes the turn to the
 * end of the generation prompt.
 *
 * The template renders the new messages behind a stand-in for the sampled turn that carries a word
 * found nowhere else; what follows the first closing literal after that word is the delta. What the
 * template does to anything earlier cannot reach it.
 *
 * @throws RolloutError `internal/delta` where the template cannot express the messages.
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
  // Stand-ins for the sampled turn, the most faithful first: its calls, these with a word, the word alone.
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

/** The calls of a turn, each with the word in the place of its arguments; `undefined` where there are none. */
function markedCalls(assistant: PyDict, nonce: string): readonly PyValue[] | undefined {
  const calls = assistant.get("tool_calls");
  return isPyList(calls) && calls.length > 0
    ? calls.map((call) => withNonceArguments(call, nonce))
    : undefined;
}

function withNonceArguments(call: PyValue, nonce: string): PyValue {
  const body = isPyDict(call) ? call.get("function") : undefined;
  if (!isPyDict(call) || !isPyDict(body)) return call;
  const marked = new Map(body).set("arguments", new Map().set("v", nonce));
  return new Map(call).set("function", marked);
}

/** A word that occurs nowhere in the values; the same values give the same word. */
export function chooseNonce(values: readonly (readonly PyValue[] | null)[]): string {
  for (let attempt = 0; ; attempt++) {
    const nonce = `qzkvx${attempt}xvkzq`;
    if (!someString(values, (text) => text.includes(nonce))) return nonce;
  }
}

function undeliverable(why: string): RolloutError {
  return new RolloutError(
    "internal/delta",
    `Cannot render what follows the sampled turn with this chat template: ${why}`,
  );
}
