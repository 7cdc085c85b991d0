import { PythonError } from "../../../../python-values/src/index.ts";
import { holdBackLength } from "../../hold-back.ts";
import { ActionReader, type CohereCall } from "./action-reader.ts";
import { rustTrimEnd, rustTrimStart } from "../../shared/text/rust-space.ts";
import { stripCitations } from "./strip-citations.ts";

/** The two formats: Command A, and Command A+, whose turns begin in the reasoning. */
export type CohereFormat = "command3" | "command4";

/** The parts of a turn. */
interface CohereTurn {
  readonly reasoning: string;
  readonly content: string;
  readonly calls: readonly CohereCall[];
}

type Section = "content" | "reasoning" | "actions" | "ignored";

const commandA: readonly (readonly [token: string, section: Section])[] = [
  ["<|START_RESPONSE|>", "content"],
  ["<|END_RESPONSE|>", "ignored"],
  ["<|START_THINKING|>", "reasoning"],
  ["<|END_THINKING|>", "content"],
  ["<|START_ACTION|>", "actions"],
  ["<|END_ACTION|>", "ignored"],
];

const formats: Readonly<
  Record<CohereFormat, { readonly start: Section; readonly tokens: ReadonlyMap<string, Section> }>
> = {
  command3: { start: "content", tokens: new Map(commandA) },
  command4: {
    start: "reasoning",
    tokens: new Map([
      ...commandA,
      ["<|START_TEXT|>", "content"],
      ["<|END_TEXT|>", "ignored"],
    ] as const),
  },
};

/**
 * Returns the end of the reasoning that a turn begins with: the token that ends it, or the end of
 * the text. 0 if the turn does not begin with reasoning.
 */
export function findReasoningEnd(text: string, format: CohereFormat): number {
  const { start, tokens } = formats[format];
  let section = start;
  for (const { token, start: place } of findTokens(text, tokens)) {
    if (section !== "reasoning" && place > 0) return 0;
    const next = tokens.get(token) as Section;
    if (section === "reasoning" && next !== "reasoning") return place;
    section = next;
  }
  return section === "reasoning" ? text.length : 0;
}

/**
 * Reads a complete turn as vLLM does, which uses Cohere's own package.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/cohere_command.py`; cohere-ai/melody,
 * `src/parsing/filter.rs`, and the results of PyPI's `cohere_melody` 0.15.3.
 *
 * @throws PythonError for half of a surrogate pair, because the package takes UTF-8.
 */
export function readCohereTurn(text: string, format: CohereFormat): CohereTurn {
  if (/\p{Surrogate}/u.test(text)) throw new PythonError("ValueError", "surrogates not allowed");
  const { start, tokens } = formats[format];
  const parts = { content: [] as string[], reasoning: [] as string[] };
  const actions = new ActionReader();
  let section = start;
  let trimsStart = false;
  let position = 0;
  const read = (piece: string, isLast: boolean): void => {
    if (section === "ignored") return;
    if (section === "actions") return actions.read(piece);
    const written = rustTrimEnd(piece);
    const kept = trimsStart ? rustTrimStart(written) : written;
    if (kept !== "") trimsStart = false;
    const waits = isLast && holdBackLength(piece, [...tokens.keys()]) === 0;
    parts[section].push(showText(kept, waits));
  };
  for (const { token, start: place, end } of findTokens(text, tokens)) {
    read(text.slice(position, place), false);
    section = tokens.get(token) as Section;
    if (section === "reasoning") trimsStart = true;
    position = end;
  }
  read(text.slice(position), true);
  return {
    content: parts.content.join(""),
    reasoning: parts.reasoning.join(""),
    calls: actions.calls,
  };
}

/**
 * Returns the text without citation marks.
 *
 * @param waits - True if an incomplete mark is kept for later; otherwise it is dropped if other
 *   text precedes it.
 */
function showText(text: string, waits: boolean): string {
  const { text: shown, length, isCited, isOpen } = stripCitations(text);
  const isNothing = shown === "" && !isCited;
  return isOpen || !(waits || isNothing) ? shown : shown + text.slice(length);
}

function* findTokens(
  text: string,
  tokens: ReadonlyMap<string, Section>,
): Iterable<{ readonly token: string; readonly start: number; readonly end: number }> {
  for (const { 0: token, index } of text.matchAll(/<\|(?:START|END)_[A-Z]+\|>/g)) {
    if (tokens.has(token)) yield { token, start: index, end: index + token.length };
  }
}
