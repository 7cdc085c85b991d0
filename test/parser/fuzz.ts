import { isDeepStrictEqual } from "node:util";
import { sglangVersions, vllmVersions } from "../../packages/tool-parsers/src/engine-version.ts";
import type {
  ReasoningOptions,
  ReasoningParser,
} from "../../packages/tool-parsers/src/reasoning/reasoning-parser.ts";
import { listReasoningParsers } from "../../packages/tool-parsers/src/reasoning/registry.ts";
import { listToolCallParsers } from "../../packages/tool-parsers/src/registry.ts";
import type {
  Attempt,
  ParseOptions,
  ParseResult,
  ToolCallParser,
} from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { ToolDefinition } from "../../src/message.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { templateSamples } from "./response-templates.ts";
import { createRandom, type Random } from "./random.ts";

/** A text to mutate, and the tools of its request. */
export interface FuzzSeed {
  readonly parser: string;
  readonly text: string;
  readonly tools: readonly ToolDefinition[];
}

/** The counts of one run. */
export interface FuzzCounts {
  toolCallTexts: number;
  reasoningTexts: number;
  /** The count of texts with a call that the engine reports. */
  withCalls: number;
  raised: number;
}

/** Pieces with a meaning for some parser, or for Python, JSON and Unicode. */
const pieces: readonly string[] = [
  ..."<>\"'\\{}[](),:=-/|&;#`".split(""),
  ..."\n \t\r\0\u0085\u001c\u2028\ufeff\u00a0é日٣".split(""),
  ..."😀 \ud83d \udc00 \r\n null true None NaN -Infinity 1e400 -0 007 0x10 1_000 12345678901234567890".split(
    " ",
  ),
  ...'<think> </think> <tool_call> </tool_call> ``` {} [] \\u00e9 \\ud83d \\n \\" &lt; &amp; f() a=1 //'.split(
    " ",
  ),
  '"name": ["x"]',
  '"arguments": null',
  '"parameters": {}',
];

/** Markup, words and quoted text: the units that a mutation removes, doubles or moves. */
const piecePattern =
  /\]<\]minimax\[>\[|<[|｜/]?[^<>\n]{1,40}>|\[[A-Z_/]+\]|◁\/?think▷|```(?:json)?|"[^"\n]{0,30}"|[\w.]+|\s+|[^]/g;

/**
 * Parses mutations of the seeds until `isOver` returns true, each with one parser, dialect and
 * engine version and cut into chunks. Checks the promises that parsers make for every text.
 *
 * @throws Error naming the seed number, the parser and the text of a broken promise.
 */
export function fuzzParsers(options: {
  readonly seed: number;
  readonly seeds: readonly FuzzSeed[];
  readonly isOver: (caseCount: number) => boolean;
}): FuzzCounts {
  const random = createRandom(options.seed);
  const counts = { toolCallTexts: 0, reasoningTexts: 0, withCalls: 0, raised: 0 };
  const parsers = listToolCallParsers();
  const reasoners = listReasoningParsers();
  for (let index = 0; !options.isOver(index); index++) {
    const isReasoning = index % 4 === 3;
    if (isReasoning) fuzzReasoning(random.pick(reasoners), random, options.seeds, counts);
    else fuzzToolCalls(random.pick(parsers), random, options.seeds, counts);
  }
  return counts;
}

function fuzzToolCalls(
  parser: ToolCallParser,
  random: Random,
  seeds: readonly FuzzSeed[],
  counts: FuzzCounts,
): void {
  const names = [parser.name, ...parser.aliases];
  const own = seeds.filter((seed) => names.includes(seed.parser));
  const seed = random.pick(own);
  const text = mutate(
    seed.text,
    random,
    () => random.pick(random.below(8) === 0 ? seeds : own).text,
  );
  const options = chooseOptions(parser, random, seed.tools);
  const facts = { parser: parser.name, options, text };
  const result = explain(facts, () => parser.parse(text, options));
  const problem =
    findProblem(text, options, result) ??
    explain(facts, () => findStreamProblem(parser, { text, options, random, result }));
  if (problem !== undefined) throw new Error(`${problem}: ${describeFacts(facts)}`);
  counts.toolCallTexts += 1;
  if (result.compat.calls.length > 0) counts.withCalls += 1;
  if (result.compat.raises) counts.raised += 1;
}

/** The template for the parsers that read by one. */
const responseTemplate = toPyValue(templateSamples["beam"]!.template) as PyDict;

function chooseOptions(
  parser: ToolCallParser,
  random: Random,
  tools: readonly ToolDefinition[],
): ParseOptions {
  const dialect = random.pick(parser.dialects);
  const engineVersion = random.pick<string>(dialect === "sglang" ? sglangVersions : vllmVersions);
  const finishReason = random.pick([undefined, undefined, "stop", "length"] as const);
  return {
    tools: random.below(12) === 0 ? [] : tools,
    dialect,
    forwardUnknownTools: random.below(6) === 0,
    engineVersion,
    responseTemplate,
    ...(finishReason !== undefined && { finishReason }),
  };
}

/** Returns the text with up to six changes; `otherText` supplies texts to take pieces from. */
export function mutate(text: string, random: Random, otherText: () => string): string {
  // Long texts are slow, and do not find other failures.
  const parts: string[] = (text.match(piecePattern) ?? []).slice(0, 400);
  for (let count = random.below(7); count > 0; count--) change(parts, random, otherText);
  return parts.join("");
}

function change(parts: string[], random: Random, otherText: () => string): void {
  const place = random.below(parts.length + 1);
  const length = 1 + random.below(random.below(4) === 0 ? 12 : 2);
  const kinds: readonly (() => void)[] = [
    () => parts.splice(place, length),
    () => parts.splice(place, length, random.pick(pieces)),
    () => parts.splice(place, 0, random.pick(pieces)),
    () => parts.splice(place, 0, ...parts.slice(place, place + length)),
    () => parts.splice(random.below(parts.length + 1), 0, ...parts.splice(place, length)),
    () => parts.splice(place),
    () => parts.splice(0, place),
    () => {
      const others = otherText().match(piecePattern) ?? [];
      const start = random.below(others.length + 1);
      parts.splice(place, 0, ...others.slice(start, start + length * 4));
    },
    () => {
      const part = parts[place] ?? "";
      const cut = random.below(part.length + 1);
      parts.splice(place, 1, part.slice(0, cut) + part.slice(cut + 1));
    },
  ];
  random.pick(kinds)();
}

/** Returns the first promise about every text that does not hold. */
function findProblem(
  text: string,
  { finishReason }: ParseOptions,
  { compat, attempts }: ParseResult,
): string | undefined {
  if (compat.raises && (compat.calls.length > 0 || compat.normalText !== "")) {
    return "an engine that raises reports something";
  }
  let position = 0;
  for (const attempt of attempts) {
    const problem = findAttemptProblem(text, position, attempt);
    if (problem !== undefined) return problem;
    if (finishReason === "length" && attempt.status === "ok") return "a cut-off call is ok";
    position = attempt.span[1];
  }
  return undefined;
}

function findAttemptProblem(text: string, position: number, attempt: Attempt): string | undefined {
  const { span, raw, status, diagnostics } = attempt;
  if (!Number.isInteger(span[0]) || !Number.isInteger(span[1])) return "a span is no place";
  if (span[0] < position) return "attempts overlap, or stand in no order";
  if (span[1] <= span[0] || span[1] > text.length) return "an attempt's span is empty or too long";
  if (raw !== text.slice(...span)) return "an attempt does not quote its text";
  if (status !== "ok" && diagnostics[0]?.status !== status) return "a status is not explained";
  return undefined;
}

/** Returns the difference between a stream, cut at random, and the one-shot result. */
function findStreamProblem(
  parser: ToolCallParser,
  facts: { text: string; options: ParseOptions; random: Random; result: ParseResult },
): string | undefined {
  const { text, options, random, result } = facts;
  const stream = parser.createStream(options);
  const events = cut(text, random).flatMap((chunk) => stream.push(chunk));
  events.push(...stream.end());
  const texts = events.flatMap((event) => (event.type === "text" ? [event.text] : []));
  const calls = events.flatMap((event) => (event.type === "tool-call" ? [event.call] : []));
  const last = events.at(-1);
  if (last?.type !== "end" || !isDeepStrictEqual(last.result, result)) {
    return "the stream ends with another result";
  }
  if (!isDeepStrictEqual(calls, result.compat.calls)) return "the stream gives other calls";
  const mayDiffer = result.compat.raises || options.dialect === "vllm";
  if (mayDiffer || texts.join("") === result.compat.normalText) return undefined;
  return "the stream gives another text";
}

function cut(text: string, random: Random): string[] {
  const longest = random.pick([1, 3, 16, 200]);
  const chunks: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = start + 1 + random.below(longest);
    chunks.push(text.slice(start, end));
    start = end;
  }
  return chunks;
}

function fuzzReasoning(
  parser: ReasoningParser,
  random: Random,
  seeds: readonly FuzzSeed[],
  counts: FuzzCounts,
): void {
  const own = seeds.filter((seed) => seed.parser === `reasoning ${parser.name}`);
  const tags = [...parser.markers, parser.closer ?? "</think>", "a ", "b\n"];
  const otherText = () => random.pick([...tags, random.pick(seeds).text]);
  const start = own.length > 0 ? random.pick(own).text : random.pick(tags) + random.pick(tags);
  const text = mutate(start, random, otherText);
  const force = random.pick([undefined, true, false]);
  const options: ReasoningOptions = {
    engineVersion: random.pick(sglangVersions),
    toolCallParserActive: random.below(2) === 0,
    forceNonemptyContent: random.below(4) === 0,
    responseTemplate,
    ...(force !== undefined && { forceReasoning: force }),
  };
  const facts = { parser: `reasoning ${parser.name}`, options, text };
  explain(facts, () => {
    const whole = parser.parse(text, options);
    const stream = parser.createStream(options);
    const parts = [...cut(text, random).map((chunk) => stream.push(chunk)), stream.end()];
    const joined = {
      reasoning: parts.map(({ reasoning }) => reasoning).join(""),
      normalText: parts.map(({ normalText }) => normalText).join(""),
    };
    if (!isDeepStrictEqual(joined, whole)) throw new Error("the stream gives another result");
  });
  counts.reasoningTexts += 1;
}

interface Facts {
  readonly parser: string;
  readonly options: object;
  readonly text: string;
}

function explain<T>(facts: Facts, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Error(`${String(error)}: ${describeFacts(facts)}`, { cause: error });
  }
}

function describeFacts({ parser, options, text }: Facts): string {
  const { tools: _, responseTemplate: __, ...settings } = options as Partial<ParseOptions>;
  return `${parser} with ${JSON.stringify(settings)} on ${JSON.stringify(text)}`;
}
