import { listToolCallParsers } from "../src/parser/registry.ts";
import type { ParseOptions, ToolCallParser } from "../src/parser/tool-call-parser.ts";
import { toolsFromOpenAi } from "../src/message.ts";
import { toPyValue } from "../src/python/value.ts";
import { callSamples } from "../test/parser-samples.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { cpuMs, median } from "./cpu-time.ts";

const parameters = { type: "object", properties: { query: { type: "string" } } };
const tools = toolsFromOpenAi(
  toPyValue([{ type: "function", function: { name: "search", parameters } }]),
  "tools",
);

/** Length of a measured turn, in UTF-16 code units. */
const turnLength = 2048;

/** Lengths of the hostile texts, and how much longer the second is. */
const hostileLength = 64_000;
const hostileFactor = 16;

/**
 * CPU to parse one turn of 2 kB that ends in a call, and how much slower each unit of a hostile text is
 * parsed where the text is 16 times as long, at the worst (1 where time is linear), by format.
 */
export async function benchParse(): Promise<BenchFigure[]> {
  const figures: BenchFigure[] = [];
  for (const parser of listToolCallParsers()) {
    for (const dialect of parser.dialects) {
      const at = `${parser.name}, ${dialect}`;
      const options = { tools, dialect };
      const value = (await turnMs(parser, options)) * 1000;
      figures.push({ bench: "parse", figure: "CPU of a 2 kB turn", value, unit: "µs", at });
      const worst = await worstScaling(parser, options);
      const figure = `hostile text ${hostileFactor} times as long: CPU per unit`;
      figures.push({ bench: "parse", figure, value: worst, unit: "times", at });
    }
  }
  return figures;
}

/** CPU milliseconds of one turn: the middle of nine rounds, after one that warms up. */
async function turnMs(parser: ToolCallParser, options: ParseOptions): Promise<number> {
  const callOf = callSamples[parser.name]!;
  const half = "The quick brown fox looks for tea. ".repeat(40);
  const opening = callOf("").length;
  const query = half.slice(0, turnLength / 2 - opening);
  const isWhole = parser.parse(callOf("tea"), options).compat.normalText === "";
  // Formats of which a call is the whole turn get it twice as long.
  const text = isWhole && parser.name.includes("pythonic") ? callOf(half) : half + callOf(query);
  const repeats = 100;
  const round = () =>
    cpuMs(async () => {
      for (let count = 0; count < repeats; count++) parser.parse(text, options);
    });
  await round();
  const rounds: number[] = [];
  for (let count = 0; count < 9; count++) rounds.push((await round()) / repeats);
  return median(rounds);
}

async function worstScaling(parser: ToolCallParser, options: ParseOptions): Promise<number> {
  const sample = callSamples[parser.name]!("");
  const units = [...parser.markers, "[", "{", '"', " ", "f(a="];
  let worst = 0;
  for (const unit of units) {
    for (const start of ["", sample.slice(0, -1), sample.slice(0, sample.length / 2)]) {
      const parse = (length: number) =>
        cpuMs(async () => {
          parser.parse(start + unit.repeat(length / unit.length), options);
        });
      await parse(hostileLength);
      const short = await parse(hostileLength);
      const long = await parse(hostileLength * hostileFactor);
      // Below a few milliseconds the clock says nothing.
      if (long > 50) worst = Math.max(worst, long / Math.max(short, 1) / hostileFactor);
    }
  }
  return worst;
}
