import { listReasoningParsers } from "../packages/tool-parsers/src/reasoning/registry.ts";
import { listToolCallParsers } from "../packages/tool-parsers/src/registry.ts";
import type { Dialect, ToolCallParser } from "../packages/tool-parsers/src/tool-call-parser.ts";
import { toolsFromOpenAi } from "../src/message.ts";
import { toPyValue, type PyDict } from "../packages/python-values/src/value.ts";
import type { HostileText } from "../test/parser/hostile.ts";
import { hostileReasoning, hostileTexts } from "../test/parser/hostile.ts";
import { templateSamples } from "../test/parser/response-templates.ts";
import { callSamples } from "../test/parser/samples.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { median } from "./cpu-time.ts";

const parameters = { type: "object", properties: { query: { type: "string" } } };
const tools = toolsFromOpenAi(
  toPyValue([
    { type: "function", function: { name: "search", parameters } },
    { type: "function", function: { name: "f", parameters } },
  ]),
  "tools",
);

/** Length of a measured turn, in UTF-16 code units. */
const turnLength = 2048;

/** Lengths of the hostile texts that are compared, each with a 16th of it. */
const wholeLength = 1_048_576;
const chunkedLength = 262_144;
const unitsLength = 65_536;
/** Lengths for the screening, which selects the texts to compare. */
const screenLengths = [1_024, 8_192] as const;

/** Screened texts of a format. */
const screenedCount = 60;

/** Turns that are parsed before the measurement. */
const warmUpCount = 500;

/** The shortest measurement, in milliseconds of CPU. */
const leastCpuMs = 20;

/** A measured way to parse a text. */
interface Subject {
  readonly at: string;
  readonly parse: (text: string) => void;
  readonly stream: (text: string, chunkLength: number) => void;
  /** A turn of about 2 kB. */
  readonly turn: string;
  readonly texts: readonly HostileText[];
}

/**
 * Measures the CPU of one turn of 2 kB. Also measures the CPU per unit of hostile texts of up to 1 MB,
 * relative to a text of a 16th of the length. The slowest texts of a screening are parsed in one piece,
 * in chunks of 16 units, and unit by unit. If time is linear, the ratio is near 1.
 */
export async function* benchParse(): AsyncGenerator<BenchFigure> {
  for (const subject of subjects()) {
    const { at } = subject;
    for (let count = 0; count < warmUpCount; count++) subject.parse(subject.turn);
    const rounds = Array.from({ length: 7 }, () => cpuPerRun(subject.turn, subject.parse));
    const turn = { figure: "CPU of a 2 kB turn", value: median(rounds) / 1000, unit: "µs" };
    yield { bench: "parse", ...turn, at };
    yield* hostileFigures(subject);
    // Lets the event loop turn, so that a caller's timers run.
    await new Promise(setImmediate);
  }
}

function* subjects(): Generator<Subject> {
  for (const parser of listToolCallParsers()) {
    for (const dialect of parser.dialects) yield toolCallSubject(parser, dialect);
  }
  for (const parser of listReasoningParsers()) {
    const [open = "", close = ""] = [parser.markers[0], parser.closer];
    yield {
      at: `reasoning ${parser.name}`,
      parse: (text) => parser.parse(text, { responseTemplate }),
      stream: (text, chunkLength) =>
        pushAll(parser.createStream({ responseTemplate }), text, chunkLength),
      turn: open + prose.slice(0, turnLength / 2) + close + prose.slice(0, turnLength / 2),
      texts: hostileReasoning(parser),
    };
  }
}

/** The template of the parsers that read a model's own format. The sample of `response_template` has its form. */
const responseTemplate = toPyValue(templateSamples["beam"]!.template) as PyDict;

const prose = "The quick brown fox looks for tea. ".repeat(turnLength / 32);

function toolCallSubject(parser: ToolCallParser, dialect: Dialect): Subject {
  const sampleOf = callSamples[parser.name]!;
  const options = { tools, dialect, responseTemplate };
  const query = prose.slice(0, turnLength / 2 - sampleOf("").length);
  // vLLM reads a call of the pythonic formats only if it is the complete turn.
  const isWhole = parser.name.includes("pythonic");
  return {
    at: `${parser.name}, ${dialect}`,
    parse: (text) => parser.parse(text, options),
    stream: (text, chunkLength) => pushAll(parser.createStream(options), text, chunkLength),
    turn: isWhole ? sampleOf(prose.slice(0, turnLength)) : prose.slice(0, 1024) + sampleOf(query),
    texts: hostileTexts(sampleOf, parser.markers),
  };
}

interface TextStream {
  push(chunk: string): unknown;
  end(): unknown;
}

function pushAll(stream: TextStream, text: string, chunkLength: number): void {
  for (let start = 0; start < text.length; start += chunkLength) {
    stream.push(text.slice(start, start + chunkLength));
  }
  stream.end();
}

function hostileFigures(subject: Subject): BenchFigure[] {
  const { parse, stream } = subject;
  const suspects = findSuspects(subject);
  const ways = [
    ["1 MB", suspects, wholeLength, parse],
    ["256 kB in chunks of 16", suspects.slice(0, 1), chunkedLength, (text) => stream(text, 16)],
    ["64 kB unit by unit", suspects.slice(0, 1), unitsLength, (text) => stream(text, 1)],
  ] as const satisfies readonly [string, readonly HostileText[], number, Subject["parse"]][];
  return ways.map(([what, texts, length, run]) => {
    const tried = texts.map((text) => compareLengths(text, length, run));
    const worst = tried.reduce((left, right) => (right.growth > left.growth ? right : left));
    return {
      bench: "parse",
      figure: `hostile text of ${what}: CPU per unit against a 16th of the length`,
      value: worst.long,
      unit: "ns",
      baseline: worst.short,
      ratio: 1 / worst.growth,
      at: `${subject.at}: ${worst.name.slice(0, 100)}`,
    };
  });
}

/** Selects the texts with the largest growth in time between the screened lengths, and the slowest ones. */
function findSuspects({ parse, texts }: Subject): HostileText[] {
  const stride = Math.ceil(texts.length / screenedCount);
  const sampled = texts.filter((_, index) => index % stride === 0);
  const screened = sampled.map((text) => {
    const [short, long] = screenLengths.map((length) => elapsedPerUnit(text.build(length), parse));
    return { text, long: long!, growth: long! / Math.max(short!, 20) };
  });
  const byGrowth = screened.toSorted((left, right) => right.growth - left.growth);
  const slowest = screened.reduce((left, right) => (right.long > left.long ? right : left));
  return [...new Set([byGrowth[0]!, slowest])].map(({ text }) => text);
}

function compareLengths(text: HostileText, length: number, run: Subject["parse"]): Comparison {
  const [short, long] = [length / 16, length].map((wanted) => {
    const built = text.build(wanted);
    return cpuPerRun(built, run) / built.length;
  });
  // A few nanoseconds are noise of the clock.
  return { name: text.name, short: short!, long: long!, growth: long! / Math.max(short!, 5) };
}

interface Comparison {
  readonly name: string;
  /** Nanoseconds per unit of the short text and of the long one. */
  readonly short: number;
  readonly long: number;
  readonly growth: number;
}

/** Measures the CPU of a run in nanoseconds, over enough runs for the coarse CPU clock. */
function cpuPerRun(text: string, run: Subject["parse"]): number {
  const start = process.cpuUsage();
  for (let count = 1; ; count++) {
    run(text);
    const { user, system } = process.cpuUsage(start);
    if (user + system >= leastCpuMs * 1000) return ((user + system) * 1000) / count;
  }
}

/** Measures one run by the wall clock, in nanoseconds. Precise enough for the screening. */
function elapsedPerUnit(text: string, run: Subject["parse"]): number {
  const start = performance.now();
  run(text);
  return ((performance.now() - start) * 1e6) / text.length;
}
