import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { workedMs } from "../../packages/tool-parsers/src/worked-ms.fixture.ts";
import { toolsFromOpenAi } from "../../src/message.ts";
import {
  findToolCallParser,
  listToolCallParsers,
} from "../../packages/tool-parsers/src/registry.ts";
import type {
  Attempt,
  Dialect,
  ToolCallParser,
} from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { hostileTexts } from "./hostile.ts";
import { templateSamples } from "./response-templates.ts";
import { callSamples } from "./samples.ts";

const parameters = { type: "object", properties: { query: { type: "string" } } };
const tools = toolsFromOpenAi(
  toPyValue([
    { type: "function", function: { name: "search", parameters } },
    { type: "function", function: { name: "ping" } },
  ]),
  "tools",
);

/** For the parsers that read by a template. */
const responseTemplate = toPyValue(templateSamples["beam"]!.template) as PyDict;

const rows = listToolCallParsers().flatMap((parser) =>
  parser.dialects.map((dialect) => [parser.name, dialect, parser] as const),
);

/** Returns the sample call of a parser. */
function sampleOf({ name }: ToolCallParser): (query: string) => string {
  const sample = callSamples[name];
  if (sample !== undefined) return sample;
  throw new Error(`test/parser/samples.ts has no call of the parser ${name}, expected one`);
}

/** Checks that the attempts are in order, do not overlap, and quote the text. */
function checkPlaces(text: string, attempts: readonly Attempt[]): void {
  let position = 0;
  for (const { span, raw } of attempts) {
    expect(span[0]).toBeGreaterThanOrEqual(position);
    expect(span[1]).toBeGreaterThanOrEqual(span[0]);
    expect(raw).toBe(text.slice(...span));
    position = span[1];
  }
  expect(position).toBeLessThanOrEqual(text.length);
}

/** Texts that resemble calls of the format: its samples, cut and reassembled. */
function resembling(parser: ToolCallParser): fc.Arbitrary<string> {
  const sample = sampleOf(parser)("tea");
  const cut = fc
    .tuple(fc.nat(sample.length), fc.nat(sample.length))
    .map(([start, end]) => sample.slice(Math.min(start, end), Math.max(start, end)));
  const words = [
    ...parser.markers,
    sample,
    "<think>",
    "</think>",
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    "\\",
    "\n",
    " ",
    "1",
    "null",
    "\ud83d",
    "😀",
  ];
  return fc
    .array(fc.oneof(fc.constantFrom(...words), cut, fc.string({ maxLength: 4 })), { maxLength: 8 })
    .map((pieces) => pieces.join(""));
}

describe.each(rows)("%s (%s)", (_, dialect, parser) => {
  test("a well-formed call is reported, with its place", () => {
    const text = sampleOf(parser)("green tea");
    const { compat, attempts } = parser.parse(text, { tools, dialect, responseTemplate });
    // Spark 2.5's arguments are written compactly.
    const argumentsText =
      parser.name === "spark25" ? '{"query":"green tea"}' : '{"query": "green tea"}';
    expect(compat.calls).toEqual([{ name: "search", argumentsText, toolIndex: 0 }]);
    expect(attempts).toHaveLength(1);
    expect(attempts[0]).toMatchObject({ status: "ok", name: "search", diagnostics: [] });
    expect(attempts[0]?.raw).toContain("green tea");
  });

  test("a call that the length limit cuts off is truncated", () => {
    const text = sampleOf(parser)("green tea");
    const cut = text.slice(0, text.indexOf("green") + 3);
    const { attempts } = parser.parse(cut, {
      tools,
      dialect,
      responseTemplate,
      finishReason: "length",
    });
    expect(attempts.map(({ status }) => status)).toEqual(["truncated-by-length"]);
  });

  test("no text throws, and attempts are in order", () => {
    fc.assert(
      fc.property(resembling(parser), (text) => {
        const { attempts } = parser.parse(text, { tools, dialect, responseTemplate });
        checkPlaces(text, attempts);
      }),
      { numRuns: 50 },
    );
  });

  test("time is linear in the text", () => {
    const texts = hostileTexts(sampleOf(parser), parser.markers);
    // The benchmark tries all texts, and longer ones.
    const stride = Math.ceil(texts.length / 25);
    for (const { build } of texts.filter((_, index) => index % stride === 0)) {
      const start = workedMs();
      parser.parse(build(60_000), { tools, dialect, responseTemplate });
      // Quadratic time would take many seconds.
      expect(workedMs() - start).toBeLessThan(3000);
    }
  });
});

const callOf = (parser: string) => callSamples[parser]!("tea");

/** Texts that once took quadratic time or worse. */
const onceSlow: readonly (readonly [parser: string, dialect: Dialect, text: string])[] = [
  ["kimi_k2", "vllm", `<|tool_calls_section_begin|><|tool_call_begin|>${" ".repeat(100_000)}`],
  ["inkling", "sglang", callOf("inkling").replace("<|end", `${'\\"'.repeat(50_000)}<|end`)],
  ["pythonic", "sglang", `[f(${"a=1, ".repeat(20_000)}x`],
];

test.each(onceSlow)("%s (%s) reads a text of 100 kB in time", (name, dialect, text) => {
  const start = workedMs();
  findToolCallParser(name).parse(text, { tools, dialect, responseTemplate });
  expect(workedMs() - start).toBeLessThan(3000);
});
