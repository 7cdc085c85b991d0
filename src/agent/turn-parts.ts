import type {
  Attempt,
  CompatResult,
  Dialect,
  ParseOptions,
  ParseResult,
  ToolCallParser,
} from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { Agent } from "./agent.ts";
import { withoutReasoning, type SplitReasoning } from "./split-reasoning.ts";
import {
  containsMarkup,
  isCall,
  isThinkingMalformed,
  toAttemptPlace,
  type ReasoningMarkup,
  type TurnForm,
} from "./turn-form.ts";

/** The turn that an agent reads. */
export type TurnToRead = Parameters<Agent["read"]>[0];

/** The formats of a model's turns. */
export interface TurnFormats {
  readonly parser: ToolCallParser;
  /** The engine that the parser reproduces. Default `sglang`. */
  readonly dialect?: Dialect;
  readonly engineVersion?: string;
  /** The model's added tokens, for formats with tokens that differ between models. */
  readonly vocabulary?: readonly string[];
  /** The model's own `response_template`, for parsers that use it. */
  readonly responseTemplate?: PyDict;
  /** Splits a reply into reasoning and normal text. If absent, the complete text is read, including reasoning. */
  readonly splitReasoning?: SplitReasoning;
  /** The literals around the reasoning. Absent: its form is not checked. */
  readonly reasoningMarkup?: ReasoningMarkup;
}

/** The parts of a turn's text. */
export interface TurnParts {
  /** The complete text, including a stop literal that closes a call. */
  readonly text: string;
  readonly reasoning: string;
  /** The text after the reasoning. */
  readonly rest: string;
  readonly compat: CompatResult;
  readonly attempts: readonly Attempt[];
  /** Attempts inside the reasoning, which engines do not parse. */
  readonly drafts: readonly Attempt[];
}

/**
 * Splits a turn's text as an engine does: reasoning first, then calls. Attempts are found in the
 * complete text, and their positions refer to it.
 */
export function splitTurn(turn: TurnToRead, formats: TurnFormats): TurnParts {
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

/** Length of a part's prefix to search for. The rest is then compared. */
const probeLength = 64;

function findStart(text: string, part: string): number {
  const start = text.indexOf(part.slice(0, probeLength));
  return start !== -1 && text.startsWith(part, start) ? start : -1;
}

/**
 * True if the split dropped a call marker. Formats with channels drop messages that are not closed.
 */
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

/**
 * Returns the form of a turn.
 *
 * @param shown - The turn's message text.
 */
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
      containsMarkup(shown, parser.markers) ||
      (markup !== undefined && containsMarkup(shown, [markup.opener, markup.closer])),
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
