import type { Attempt, CompatResult, Dialect, ToolCallParser } from "../parser/tool-call-parser.ts";
import type { Agent } from "./agent.ts";
import { locateAttempts } from "./locate-attempts.ts";
import { withoutReasoning, type SplitReasoning } from "./split-reasoning.ts";
import {
  holdsMarkup,
  isCall,
  isThinkingMalformed,
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
  /** The attempts in the rest. */
  readonly attempts: readonly Attempt[];
  /** The attempts in the reasoning, where no engine looks for them. */
  readonly drafts: readonly Attempt[];
}

/** Takes a turn's text apart, as an engine does: reasoning first, then calls. */
export function takeApart(turn: TurnToRead, formats: TurnFormats): TurnParts {
  const { parser, dialect, engineVersion, splitReasoning } = formats;
  const parse = (part: string) =>
    parser.parse(part, {
      tools: turn.tools,
      finishReason: turn.finish,
      ...(dialect === undefined ? {} : { dialect }),
      ...(engineVersion === undefined ? {} : { engineVersion }),
    });
  const { stopText = "" } = turn;
  const keepsStop = parser.closingStops?.includes(stopText) === true;
  const text = keepsStop ? turn.text + stopText : turn.text;
  const { reasoning, rest } = withoutReasoning(text, splitReasoning, turn.reasoningOpened);
  const holdsDrafts = parser.markers.some((marker) => reasoning.includes(marker));
  const drafts = holdsDrafts ? parse(reasoning).attempts.filter(isCall) : [];
  return {
    text,
    reasoning,
    rest,
    ...parse(rest),
    drafts: drafts.map((attempt) => ({ ...attempt, status: "in-reasoning" })),
  };
}

/** @param shown - What others are shown of the turn. */
export function judgeForm(
  { text, reasoning, rest, drafts, attempts }: TurnParts,
  shown: string,
  turn: TurnToRead,
  { parser, reasoningMarkup: markup }: TurnFormats,
): TurnForm {
  const places = locateAttempts(text, rest, attempts);
  const literals = markup === undefined ? [] : [markup.opener, markup.closer];
  return {
    attempts: [...locateAttempts(text, reasoning, drafts), ...places],
    leakedMarkup: holdsMarkup(shown, [...parser.markers, ...literals]),
    thinkingMalformed:
      markup !== undefined &&
      isThinkingMalformed(text, {
        markup,
        opened: turn.reasoningOpened,
        finish: turn.finish,
        calls: places.map(({ span }) => span),
      }),
  };
}
