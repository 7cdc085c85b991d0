import type { PyDict } from "../../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import { tryRender } from "../bound-template.ts";
import { literalPattern } from "../guard/literal-pattern.ts";
import type { ProbeCall } from "../capability/probe-messages.ts";
import { assistantMessage, toolMessage, userMessage } from "../capability/probe-messages.ts";
import type { Prober } from "../capability/prober.ts";
import { createProber } from "../capability/prober.ts";

/** The literals that end an assistant turn in a template's text. */
export interface StopLiterals {
  /** Every literal at which the text of an assistant turn ends. */
  readonly closers: readonly string[];
  /**
   * The closers that the template prints after the last turn, which a model samples. Some templates (gpt-oss) close
   * earlier turns with another token.
   */
  readonly sampled: readonly string[];
  /**
   * The closers that belong to the next message (GLM's `<|user|>` and `<|observation|>`): a sampled one must match
   * the next message's first token.
   */
  readonly openers: readonly string[];
}

/** The literals known before rendering. */
export interface ControlLiterals {
  /** Matches anything that may be a control literal; global. */
  readonly pattern: RegExp;
  /** Literals from the model folder that end a turn. */
  readonly known: readonly string[];
}

const [bar, open, close] = ["｜", "〈", "〉"];

/** The shapes of control literals in published templates, used without a tokenizer. */
export const controlShapes = new RegExp(
  [
    String.raw`<\|[^|<>\s]{1,40}\|>`, // <|im_end|>
    String.raw`<${bar}[^${bar}<>\n]{1,40}${bar}>`, // <｜end▁of▁sentence｜>
    String.raw`<[a-z]+(?:_[a-z]+)*\|>|<\|[a-z]+(?:_[a-z]+)*>`, // <turn|>, <|tool_response>
    String.raw`<\/s>|<\/?sp_end>|<\/assistant>|<seed:eos>|<eos>|<sep>`,
    String.raw`<(?:start|end)_of_[a-z]+>`, // <end_of_turn>, <end_of_utterance>
    String.raw`<\[?[A-Z_]+(?:_\d+)?\]?>`, // <SPECIAL_12>
    String.raw`\[\/?INST\]|\[e~\[|\]~b\]|${open}\|[A-Z]+\|${close}`,
  ].join("|"),
  "gu",
);

const mark = "qbzvkq";
const answer = "wkxjqw";
const call: ProbeCall = { id: "call00001", name: "find_parcel", arguments: { parcel_id: mark } };
const secondCall: ProbeCall = { ...call, id: "call00002" };

/** A conversation up to an assistant turn, and a message that can follow it. Both are rendered to try out a template. */
interface Probe {
  readonly turn: readonly PyDict[];
  readonly next: PyDict;
}

function createProbes(opening: readonly PyDict[]): readonly Probe[] {
  const calling = assistantMessage({ content: "", calls: [call] });
  return [
    { turn: [...opening, assistantMessage({ content: mark })], next: userMessage(answer) },
    { turn: [...opening, calling], next: toolMessage(call, answer) },
  ];
}

/** Finds the literals that end an assistant turn by rendering conversations. */
export function learnStopLiterals(
  template: BoundTemplate,
  { pattern, known }: ControlLiterals,
): StopLiterals {
  const prober = createProber(template);
  const closers = new Set<string>();
  const sampled = new Set<string>();
  for (const { turn, next } of createProbes(prober.opening)) {
    const tail = textAfterMark(prober.show(turn, false)) ?? "";
    const own = closerOfLastTurn(prober, tail, { pattern, known: [...known, ...closers] });
    if (own !== undefined) {
      closers.add(own);
      sampled.add(own);
    }
    const between = textBetween(prober, [...turn, next]) ?? "";
    const followed = firstOf(between, [...known, ...closers]) ?? firstOf(between, pattern);
    if (followed !== undefined) {
      closers.add(followed);
      if (own === undefined || tail.includes(followed)) sampled.add(followed);
    }
  }
  const promptOpener = findPromptOpener(prober, pattern);
  return {
    closers: [...closers],
    openers: findOpeners(template, prober, { closers: [...closers], promptOpener }),
    sampled: [...sampled].filter((literal) => literal !== promptOpener),
  };
}

/** The last literal that the template prints after a final turn. */
function closerOfLastTurn(
  { show }: Prober,
  tail: string,
  { pattern, known }: ControlLiterals,
): string | undefined {
  const knownCloser = firstOf(tail, known);
  if (knownCloser !== undefined) return knownCloser;
  // A template that always adds the generation prompt hides the end of the turn.
  const question = [userMessage(answer)];
  const [open, prompted] = [false, true].map((flag) => show(question, flag));
  if (open !== undefined && open === prompted) {
    const afterQuestion = open.slice(open.lastIndexOf(answer) + answer.length);
    return firstOf(commonEnd(tail, afterQuestion), pattern) ?? firstOf(tail, pattern);
  }
  const last = [...tail.matchAll(pattern)].at(-1);
  if (last === undefined) return undefined;
  return tail.slice(last.index + last[0].length).trim() === "" ? last[0] : undefined;
}

/**
 * Finds the closers that open the next turn instead of closing this one: the first literal of the generation
 * prompt, a literal that stands between two results but not after the last, and, if a user turn begins with a
 * closer, all of these.
 */
function findOpeners(
  template: BoundTemplate,
  { opening, show }: Prober,
  { closers, promptOpener }: { closers: readonly string[]; promptOpener: string | undefined },
): readonly string[] {
  if (closers.some((closer) => beginsUserTurn(template, closer))) return closers;
  const calling = assistantMessage({ content: "", calls: [call, secondCall] });
  const results = [toolMessage(call, answer), toolMessage(secondCall, answer)];
  const text = show([...opening, calling, ...results], true);
  const [, between = "", after = ""] = text?.split(answer) ?? [];
  return closers.filter(
    (closer) => closer === promptOpener || (between.includes(closer) && !after.includes(closer)),
  );
}

/** The literal at the start of the generation prompt. */
function findPromptOpener({ show }: Prober, pattern: RegExp): string | undefined {
  const question = [userMessage(answer)];
  const [open, prompted] = [false, true].map((flag) => show(question, flag));
  if (open === undefined || prompted === undefined || !prompted.startsWith(open)) return undefined;
  return firstOf(prompted.slice(open.length), pattern);
}

/** True if a user turn begins with the literal even without an earlier message, and does not end with it. */
function beginsUserTurn(template: BoundTemplate, closer: string): boolean {
  const said = assistantMessage({ content: mark });
  // Renders without tools, since their announcement may end in a closer just before the user turn.
  const show = (messages: readonly PyDict[], addGenerationPrompt: boolean): string | undefined =>
    tryRender(template, { messages, tools: null, addGenerationPrompt });
  const first = show([userMessage(answer), said], false);
  const between = textBetween({ show }, [userMessage(mark), said, userMessage(answer)]);
  const at = between?.indexOf(closer) ?? -1;
  if (first === undefined || between === undefined || at < 0) return false;
  const [before = "", after = ""] = first.split(answer);
  return (
    before.endsWith(between.slice(at)) && !after.slice(0, after.indexOf(mark)).includes(closer)
  );
}

function textAfterMark(text: string | undefined): string | undefined {
  const at = text?.lastIndexOf(mark) ?? -1;
  return at < 0 ? undefined : text?.slice(at + mark.length);
}

/** The text between the end of the assistant's turn and the words of the next message. */
function textBetween(
  { show }: Pick<Prober, "show">,
  messages: readonly PyDict[],
): string | undefined {
  const after = textAfterMark(show(messages, true));
  const end = after?.indexOf(answer) ?? -1;
  return end < 0 ? undefined : after?.slice(0, end);
}

function commonEnd(left: string, right: string): string {
  let length = 0;
  while (length < left.length && left.at(-1 - length) === right.at(-1 - length)) length++;
  return left.slice(left.length - length);
}

function firstOf(text: string, literals: RegExp | readonly string[]): string | undefined {
  const pattern = literals instanceof RegExp ? literals : literalPattern(literals);
  return text.match(new RegExp(pattern.source, "u"))?.[0];
}
