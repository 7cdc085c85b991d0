import { describe, expect, test } from "vitest";
import { toolsFromOpenAi } from "../../tool-definition.ts";
import { toPyValue } from "../../../../python-values/src/index.ts";
import type { ParseOptions, ParseResult } from "../../tool-call-parser.ts";
import { qwen25 } from "./qwen25.ts";

const parameters = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city"],
};
const tools = toolsFromOpenAi(
  toPyValue([
    { type: "function", function: { name: "get_weather", parameters } },
    { type: "function", function: { name: "ping" } },
  ]),
  "tools",
);

const call = '{"name": "get_weather", "arguments": {"city": "Oslo"}}';
const block = `<tool_call>\n${call}\n</tool_call>`;

function parse(text: string, options: Partial<ParseOptions> = {}): ParseResult {
  return qwen25.parse(text, { tools, ...options });
}

function statuses(text: string, options?: Partial<ParseOptions>): string[] {
  return parse(text, options).attempts.map(({ status }) => status);
}

describe("compat", () => {
  test("the text before the first call is kept, and the text after it is lost", () => {
    expect(parse(`I look. ${block}\nThen this. ${block} bye`).compat).toEqual({
      normalText: "I look.",
      calls: [
        { name: "get_weather", argumentsText: '{"city": "Oslo"}', toolIndex: 0 },
        { name: "get_weather", argumentsText: '{"city": "Oslo"}', toolIndex: 0 },
      ],
      raises: false,
    });
  });

  test("a malformed call is dropped since 2026-08, and is returned as text by older releases", () => {
    const text = "So: <tool_call>\n{bad}\n</tool_call>";
    expect(parse(text).compat).toEqual({ normalText: "So:", calls: [], raises: false });
    expect(parse(text, { engineVersion: "0.5.15" }).compat.normalText).toBe(text);
  });

  test("a malformed call raises up to 0.4.6", () => {
    const text = `${block}<tool_call>{bad}</tool_call>`;
    expect(parse(text, { engineVersion: "0.4.6" }).compat).toEqual({
      normalText: "",
      calls: [],
      raises: true,
    });
  });

  test("an entry that is not an object raises, and is skipped by the next release", () => {
    const text = `<tool_call>\n[3, ${call}]\n</tool_call>`;
    expect(parse(text).compat.raises).toBe(true);
    expect(parse(text, { engineVersion: "next" }).compat.calls).toHaveLength(1);
  });

  test("tool positions are hidden from 0.4.9 to 0.5.6", () => {
    const ping = '<tool_call>\n{"name": "ping"}\n</tool_call>';
    const index = (engineVersion: string): number | undefined =>
      parse(ping, { engineVersion }).compat.calls[0]?.toolIndex;
    expect(["0.4.5", "0.4.9", "0.5.6", "0.5.15"].map(index)).toEqual([1, -1, -1, 1]);
  });

  test("an unknown engine version is refused with the known ones", () => {
    expect(() => parse("", { engineVersion: "0.5" })).toThrow(/expected one of 0\.4\.5, 0\.4\.6/);
  });
});

describe("attempts", () => {
  test("raw and span are those of the block, markers included", () => {
    const { attempts } = parse(`I look. ${block}\n`);
    expect(attempts).toEqual([
      {
        status: "ok",
        diagnostics: [],
        raw: block,
        span: [8, 8 + block.length],
        name: "get_weather",
        argumentsText: '{"city": "Oslo"}',
      },
    ]);
  });

  test.each([
    ["<tool_call>\n{bad}\n</tool_call>", ["invalid-json"]],
    [`<tool_call>\n${call}`, ["unclosed-block"]],
    [`<tool_call>\n${call}\n${block}`, ["unclosed-block", "ok"]],
    [`<tool_call>${call}</tool_call>`, ["malformed-structure"]],
    ['<tool_call>\n{"arguments": {}}\n</tool_call>', ["missing-name"]],
    ['<tool_call>\n{"name": "nope", "arguments": {}}\n</tool_call>', ["unknown-tool"]],
    ['<tool_call>\n{"name": "ping", "arguments": [1]}\n</tool_call>', ["non-object-arguments"]],
    [
      '<tool_call>\n{"name": "ping", "arguments": "{\\"a\\": 1}"}\n</tool_call>',
      ["double-encoded-arguments"],
    ],
    [`<think>${block}</think>${block}`, ["in-reasoning", "ok"]],
    [`draft ${block}</think>${block}`, ["in-reasoning", "ok"]],
    ["Write <tool_call> to call a tool.", ["marker-only"]],
    [`<tool_call>\n[${call}, ${call}, 3]\n</tool_call>`, ["ok", "ok", "malformed-structure"]],
    ["no call at all", []],
  ])("%j is %j", (text, expected) => {
    expect(statuses(text)).toEqual(expected);
  });

  test("a closing tag inside a string does not end the call", () => {
    const text = '<tool_call>\n{"name": "ping", "arguments": {"x": "</tool_call>"}}\n</tool_call>';
    expect(parse(text).attempts.map(({ raw }) => raw)).toEqual([text]);
  });

  test("the entries of a list divide the block", () => {
    const text = `<tool_call>\n[${call}, {"name": "ping"}]\n</tool_call>`;
    const { attempts } = parse(text);
    expect(attempts.map(({ raw }) => raw).join("")).toBe(text);
    expect(attempts[1]?.raw).toBe('{"name": "ping"}]\n</tool_call>');
  });

  test("a turn that was cut off executes nothing", () => {
    expect(statuses(`${block}<tool_call>\n{"na`, { finishReason: "length" })).toEqual([
      "truncated-by-length",
      "truncated-by-length",
    ]);
  });

  test("arguments that break the tool's schema are reported with their paths", () => {
    const text = '<tool_call>\n{"name": "get_weather", "arguments": {"days": "x"}}\n</tool_call>';
    expect(parse(text).attempts[0]).toMatchObject({
      status: "ok",
      diagnostics: [
        {
          status: "schema-mismatch",
          detail: "/: must have required property 'city'; /days: must be integer",
        },
      ],
    });
  });

  test("a repeated call is reported as a duplicate", () => {
    const second = parse(`${block}\n${block}`).attempts[1];
    expect(second?.diagnostics.map(({ status }) => status)).toEqual(["duplicate-call"]);
  });
});
