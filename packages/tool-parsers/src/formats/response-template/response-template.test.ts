import { describe, expect, test } from "vitest";
import { UsageError } from "../../../../python-values/src/support/index.ts";
import { type PlainJson, type PyDict, toPyValue } from "../../../../python-values/src/index.ts";
import { toolsFromOpenAi } from "../../tool-definition.ts";
import { findReasoningParser } from "../../reasoning/registry.ts";
import { findToolCallParser } from "../../registry.ts";
import { readPythonRegex } from "./python-regex.ts";
import { searchPattern } from "./template-search.ts";
import { loadResponseTemplate } from "./response-template.ts";

describe("readPythonRegex()", () => {
  test.each([
    [String.raw`<\|start\|>\s*`, "<|start|>\u00a0 ", "<|start|>\u00a0 "],
    [String.raw`a{,2}?b`, "aab", "aab"],
    [String.raw`[^\s<\]-]+`, "q]", "q"],
    [String.raw`(?P<name>[\w.]+)(?=\{)`, "naïve.é{", "naïve.é"],
    [String.raw`x$`, "x\n", "x"],
    [String.raw`(?<=é).`, "é😀", "😀"],
    [String.raw`\bß\b`, "straß ß", "ß"],
    [String.raw`a(?: id="(?<id>\d+)")?>`, 'a id="٣">', 'a id="٣">'],
  ])("%j matches in %j as in Python", (pattern, text, found) => {
    const match = searchPattern(readPythonRegex(pattern, "it").node, "it")(text, 0);
    expect(match && text.slice(match.start, match.end)).toBe(found);
  });

  test.each([
    ["(?i)a", "the group (?i"],
    ["a++", "a possessive repetition"],
    ["(?P<a>x)(?P=a)", "the group (?P"],
    [String.raw`(a)\1`, String.raw`the escape \1`],
    ["(?P<a>x)+", "a group that is captured in a repetition"],
    ["(?:a*)*", "a repetition of what can be empty"],
    ["a{e<=1}", "a brace that is not escaped"],
    ["[[a]&&[b]]", "a set within a class"],
    [String.raw`\p{L}`, String.raw`the escape \p`],
    ["(a", "a group without its end"],
    ["a)", "a closing parenthesis"],
    ["[a", "an incomplete expression"],
    ["[z-a]", "a broken range"],
    ["(?P<a>x)|(?P<a>y)", 'two groups of the name "a"'],
  ])("refuses %j", (pattern, why) => {
    expect(() => readPythonRegex(pattern, "it")).toThrow(UsageError);
    expect(() => readPythonRegex(pattern, "it")).toThrow(why);
  });
});

const anchor = { start_anchor: "<a>" };
const tool = { open: "<t>", close: "</t>", content: "json" };

describe("loadResponseTemplate()", () => {
  test.each<[PlainJson, string]>([
    [[], "response_template is not an object"],
    [{ ...anchor, version: 2, fields: {} }, "its version is 2"],
    [{ ...anchor, fields: {} }, "it has no fields"],
    [{ fields: { content: {} } }, "neither start_anchor nor start_anchor_pattern"],
    [{ ...anchor, more: 1, fields: { content: {} } }, "response_template has more"],
    [{ ...anchor, fields: { other: {} } }, "response_template.fields has other"],
    [{ ...anchor, fields: { content: {}, thinking: {} } }, "have no open"],
    [{ ...anchor, fields: { tool_calls: { content: "json" } } }, "tool_calls has neither open"],
    [{ ...anchor, fields: { content: { open: "" } } }, "none of them empty"],
    [{ ...anchor, fields: { content: { open: "<c>", open_pattern: "c" } } }, "has both open"],
    [{ ...anchor, fields: { tool_calls: { ...tool, content: "yaml" } } }, '"yaml"'],
    [{ ...anchor, fields: { tool_calls: { ...tool, transform: "a {b}" } } }, "mixes a placeholder"],
    [
      { ...anchor, fields: { tool_calls: { ...tool, join: "," } } },
      "join is given without repeats",
    ],
    [
      { ...anchor, fields: { thinking: {}, content: { open: "<c>" } } },
      "content has open, and thinking has none",
    ],
    [
      { ...anchor, fields: { tool_calls: { open_pattern: "(?P<n>a)" } } },
      "captures n, and has no transform",
    ],
    [
      {
        ...anchor,
        fields: {
          tool_calls: { open: "<t>", content: "xml-inline", content_args: { tag_pattern: "a" } },
        },
      },
      "has no group key",
    ],
  ])("refuses %j", (spec, why) => {
    expect(() => loadResponseTemplate(toPyValue(spec), "sglang")).toThrow(UsageError);
    expect(() => loadResponseTemplate(toPyValue(spec), "sglang")).toThrow(why);
  });
});

describe("a model's own response template", () => {
  const responseTemplate = toPyValue({
    start_anchor: "<|im_start|>assistant\n",
    fields: {
      thinking: { open: "<think>", close: "</think>" },
      tool_calls: {
        open_pattern: String.raw`<call name="(?P<name>[^"]+)">`,
        close: "</call>",
        content: "kv-lines",
        transform: { function: { name: "{name}", arguments: "{content}" } },
      },
    },
  }) as PyDict;
  const parameters = { properties: { count: { type: "integer" }, flag: { enum: [true] } } };
  const tools = toolsFromOpenAi(
    toPyValue([{ type: "function", function: { name: "search", parameters } }]),
    "tools",
  );
  const text = '<think>plan</think>Hi. <call name="search">count: 3.0\nflag: true</call>';

  test("separates reasoning, and reads calls by the tool's schema", () => {
    const parsed = findReasoningParser("response_template").parse(text, { responseTemplate });
    expect(parsed.reasoning).toBe("plan");
    const { compat } = findToolCallParser("response_template").parse(parsed.normalText, {
      tools,
      responseTemplate,
      engineVersion: "0.5.23",
    });
    expect(compat.normalText).toBe("Hi. ");
    expect(compat.calls).toEqual([
      { name: "search", argumentsText: '{"count": 3, "flag": true}', toolIndex: 0 },
    ]);
  });

  test("is read by vLLM without the types that keywords imply", () => {
    const { compat } = findToolCallParser("hf").parse(text, {
      tools,
      responseTemplate,
      dialect: "vllm",
    });
    expect(compat.normalText).toBe("planHi. ");
    expect(compat.calls[0]?.argumentsText).toBe('{"count": 3, "flag": "true"}');
  });

  test("begins inside the reasoning if the prompt opened it", () => {
    const options = { responseTemplate, forceReasoning: true };
    const parsed = findReasoningParser("hf").parse("plan</think>Hi.", options);
    expect(parsed).toEqual({ reasoning: "plan", normalText: "Hi." });
  });

  test("marks a call in the reasoning", () => {
    const call = '<call name="search">count: 1</call>';
    const { attempts } = findToolCallParser("hf").parse(`<think>${call}</think>`, {
      tools,
      responseTemplate,
    });
    expect(attempts.map(({ status, raw }) => [status, raw])).toEqual([["in-reasoning", call]]);
  });

  test("is read in linear time, even with patterns that would backtrack for years", () => {
    const slow = toPyValue({
      start_anchor: "<|im_start|>assistant\n",
      fields: {
        tool_calls: {
          open_pattern: "<call (?:[a-z]+[a-z]*)+>",
          close: "</call>",
          content: "xml-inline",
          content_args: {
            tag_pattern: "<p (?P<key>[a-z]+)>(?:[^<]|[^>])*(?:[^<]|[^>])*=(?P<value>[0-9]+)</p>",
          },
          transform: { function: { name: "search", arguments: "{content}" } },
        },
      },
    }) as PyDict;
    const parse = (turn: string) =>
      findToolCallParser("hf").parse(turn, { tools, responseTemplate: slow, dialect: "vllm" })
        .compat;
    expect(parse("<call a><p count>x=3</p></call>").calls[0]?.argumentsText).toBe('{"count": 3}');
    expect(parse(`<call ${"a".repeat(2_000)}!`).calls).toEqual([]);
    expect(parse(`<call a><p count>${"x".repeat(500)}</call>`).calls).toHaveLength(1);
  });

  test("is required by a parser without a template", () => {
    expect(() => findToolCallParser("hf").parse(text, { tools })).toThrow(
      /Cannot parse with a response template: none is given/,
    );
  });
});
