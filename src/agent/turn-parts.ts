import type {
  Attempt,
  CompatResult,
  Dialect,
  ParseOptions,
  ParseResult,
  ToolCallParser,
} from "../parser/tool-call-parser.ts";
import type { PyDict } from "../python/value.ts";
import type { Agent } from "./agent.ts";
import { withoutReasoning, type SplitReasoning } from "./split-reasoning.ts";
import {
  holdsMarkup,
  isCall,
  isThinkingMalformed,
  toAttemptPlace,
  type ReasoningMarkup,
  type TurnForm,
} from "./turn-form.ts";

/** What the agent is told of a turn. */
export type TurnToRead = Parameters<Agent["read"]>[0];

/** In which formats turns are written. */
export interface TurnFormats {
  readonly parser: ToolCallParser;
  /** Whose behaviour the parser reproduces. Default `sglang`. */
  readonly dialect?: Dialect;
  readonly engineVersion?: string;
  /** The model's added tokens, for formats whose tokens differ between models. */
  readonly vocabulary?: readonly string[];
  /** The model's own `response_template`, for the parsers that read by it. */
  readonly responseTemplate?: PyDict;
  /** Absent: the whole text is read, reasoning included. */
  readonly splitReasoning?: SplitReasoning;
  /** What the reasoning stands between; absent, its form is not judged. */
  readonly reasoningMarkup?: ReasoningMarkup;
}

/** What a turn's text holds. */
export interface TurnParts {
  /** The whole of it, with the stop that closes a call as well as the turn. */
  readonly text: string;
  readonly reasoning: string;
  /** The text behind the reasoning. */
  readonly rest: string;
  readonly compat: CompatResult;
  readonly attempts: readonly Attempt[];
  /** Attempts in the reasoning, where no engine looks for them. */
  readonly drafts: readonly Attempt[];
}

/**
 * Takes a turn's text apart, as an engine does: reasoning first, then calls. Attempts are looked for in
 * all of it, and their places are those in the whole.
 */
export function takeApart(turn: TurnToRead, formats: TurnFormats): TurnParts {
  const { stopText = "" } = turn;
  const keepsStop = formats.parser.closingStops?.includes(stopText) === true;
  const text = keepsStop ? turn.text + stopText : turn.text;
  const opened = turn.reasoningOpened;
  const { reasoning, rest } = withoutReasoning(text, formats.splitReasoning, opened);
  const read = parse(rest, turn, formats);
  const { compat } = read;
  if (rest === text && reasoning === "") {
    return { text, reasoning, rest, compat, attempts: read.attempts, drafts: [] };
  }
  const reasoningStart = findStart(text, reasoning);
  if (dropsMarkup({ text, reasoning, rest }, reasoningStart, formats.parser)) {
    const { attempts } = parse(text, turn, formats);
    return { text, reasoning, rest, compat, attempts, drafts: [] };
  }
  return {
    text,
    reasoning,
    rest,
    compat,
    attempts: moveAttempts(read.attempts, text.length - rest.length),
    drafts: moveAttempts(findDrafts(reasoning, turn, formats), reasoningStart),
  };
}

/** How much of a part is searched for; the rest is then compared. */
const probeLength = 64;

function findStart(text: string, part: string): number {
  const start = text.indexOf(part.slice(0, probeLength));
  return start !== -1 && text.startsWith(part, start) ? start : -1;
}

/** Formats with channels leave out whole messages that are not closed, calls among them. */
function dropsMarkup(
  { text, reasoning, rest }: Pick<TurnParts, "text" | "reasoning" | "rest">,
  reasoningStart: number,
  { markers }: ToolCallParser,
): boolean {
  if (reasoningStart === -1 || !text.endsWith(rest)) return true;
  const dropped = [
    text.slice(0, reasoningStart),
    text.slice(reasoningStart + reasoning.length, text.length - rest.length),
  ];
  return markers.some((marker) => dropped.some((piece) => piece.includes(marker)));
}

function parse(
  text: string,
  { tools, finish }: TurnToRead,
  { parser, dialect, engineVersion, vocabulary, responseTemplate }: TurnFormats,
): ParseResult {
  const options: { -readonly [Key in keyof ParseOptions]: ParseOptions[Key] } = {
    tools,
    finishReason: finish,
  };
  if (dialect !== undefined) options.dialect = dialect;
  if (engineVersion !== undefined) options.engineVersion = engineVersion;
  if (vocabulary !== undefined) options.vocabulary = vocabulary;
  if (responseTemplate !== undefined) options.responseTemplate = responseTemplate;
  return parser.parse(text, options);
}

function findDrafts(reasoning: string, turn: TurnToRead, formats: TurnFormats): readonly Attempt[] {
  if (!formats.parser.markers.some((marker) => reasoning.includes(marker))) return [];
  return parse(reasoning, turn, formats)
    .attempts.filter(isCall)
    .map((attempt) => ({ ...attempt, status: "in-reasoning" }));
}

function moveAttempts(attempts: readonly Attempt[], by: number): readonly Attempt[] {
  if (by === 0) return attempts;
  return attempts.map((attempt) => {
    const [start, end] = attempt.span;
    return { ...attempt, span: [start + by, end + by] };
  });
}

/** @param shown - What others are shown of the turn. */
export function judgeForm(
  { text, drafts, attempts }: TurnParts,
  shown: string,
  turn: TurnToRead,
  { parser, reasoningMarkup: markup }: TurnFormats,
): TurnForm {
  const found = drafts.length === 0 ? attempts : [...drafts, ...attempts];
  return {
    attempts: found.map(toAttemptPlace),
    leakedMarkup:
      holdsMarkup(shown, parser.markers) ||
      (markup !== undefined && holdsMarkup(shown, [markup.opener, markup.closer])),
    thinkingMalformed:
      markup !== undefined &&
      isThinkingMalformed(text, {
        markup,
        opened: turn.reasoningOpened,
        finish: turn.finish,
        calls: attempts.map(({ span }) => span),
      }),
  };
}
