import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { workedMs } from "../../worked-ms.fixture.ts";
import { findReasoningParser } from "../../reasoning/registry.ts";
import { findToolCallParser } from "../../registry.ts";
import { ActionReader } from "./action-reader.ts";
import { JsonEnd } from "./json-end.ts";
import { readCohereTurn, type CohereFormat } from "./read-cohere-turn.ts";

const call = (parameters: string): string =>
  `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": ${parameters}}]<|END_ACTION|>`;

describe("readCohereTurn()", () => {
  test("the reasoning, the answer and the calls are separated", () => {
    const turn =
      "<|START_THINKING|> Look. <|END_THINKING|><|START_RESPONSE|> Hi. <|END_RESPONSE|>x";
    expect(readCohereTurn(turn + call('{"a": 1}'), "command3")).toEqual({
      reasoning: "Look.",
      content: " Hi.",
      calls: [{ name: "f", argumentsText: '{"a": 1}' }],
    });
  });

  test("Command A+ begins in the reasoning, Command A in the answer", () => {
    expect(readCohereTurn("Hi.", "command4")).toMatchObject({ reasoning: "Hi.", content: "" });
    expect(readCohereTurn("Hi.", "command3")).toMatchObject({ reasoning: "", content: "Hi." });
  });

  test.each([
    ["{}", ""],
    ["[1]", ""],
    ['"x"', ""],
    ['{"a": NaN}', '{"a": NaN}}]'],
    ['{"a": "\\ud83d"}', '{"a": "\\ud83d"}}]'],
    ['{"a": 1e999}', '{"a": 1e999}}]'],
    [
      '{\n            "a": 1,\n                "b": "x"\n        }',
      '{\n    "a": 1,\n        "b": "x"\n}',
    ],
    [`${"[".repeat(127)}${"]".repeat(127)}, "x": {"parameters": {"y": 0}`, "["],
  ])("parameters %j are reported as %j", (parameters, argumentsText) => {
    const [found] = readCohereTurn(call(parameters), "command3").calls;
    if (argumentsText === "[") {
      expect(found?.argumentsText).toBe("[".repeat(127) + "]".repeat(127));
    } else expect(found).toEqual({ name: "f", argumentsText });
  });

  test("a call without parameters takes those of a later call", () => {
    const two = `${call("{}").slice(0, -16)}, {"tool_call_id": "1", "tool_name": "g", "parameters": {"a": 1}}]`;
    expect(readCohereTurn(two, "command3").calls).toEqual([
      { name: "f", argumentsText: "{}" },
      { name: "g", argumentsText: '{"a": 1}' },
    ]);
  });

  test.each([
    ["a <co>b</co: 0:[1]> c", "a b c"],
    ["a <co>b", "a b"],
    ["a <co>b</co: 0:[", "a b"],
    ["a <comb>b</co: 0>", "a <comb>b</co: 0>"],
    ["a <c", "a <c"],
    ["a<co>b</co: 0><c", "ab<c"],
    ["a<co>b</co: 0><c<|END_THINKING|>", "ab"],
  ])("citations in %j are removed: %j", (text, content) => {
    expect(readCohereTurn(text, "command3").content).toBe(content);
  });

  test("half of a surrogate pair makes the engine raise", () => {
    const { compat } = findToolCallParser("cohere_command3").parse("a\ud83d", {
      tools: [],
      dialect: "vllm",
    });
    expect(compat).toEqual({ normalText: "", calls: [], raises: true });
  });
});

describe("the reasoning parsers of Cohere", () => {
  const pieces = [
    ...["THINKING", "RESPONSE", "TEXT", "ACTION"].flatMap((word) => [
      `<|START_${word}|>`,
      `<|END_${word}|>`,
    ]),
    " ",
    "a",
    "<co>",
    "</co: 0>",
    "<",
    '{"tool_call_id": "0", "tool_name": "f"',
    ', "parameters": {"a": ',
    "1}}",
    "\n",
    "{}",
  ];

  test.each<[CohereFormat, string]>([
    ["command3", "cohere_command3"],
    ["command4", "cohere_command4"],
  ])("%s: the text for the tool-call parser has the same answer and calls", (format, name) => {
    const texts = fc
      .array(fc.constantFrom(...pieces), { maxLength: 14 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, (text) => {
        const options = { dialect: "vllm", toolCallParserActive: true } as const;
        const { reasoning, normalText } = findReasoningParser(name).parse(text, options);
        const whole = readCohereTurn(text, format);
        const rest = readCohereTurn(normalText, format);
        expect(reasoning).toBe(whole.reasoning);
        expect({ ...rest, reasoning: "" }).toEqual({ ...whole, reasoning: "" });
        expect(text.endsWith(normalText)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test("without a tool-call parser, the rest is the answer", () => {
    const text = "plan<|END_THINKING|><|START_TEXT|>Hi <co>all</co: 0:[0]>.<|END_TEXT|>";
    const parser = findReasoningParser("cohere_command4");
    const expected = { reasoning: "plan", normalText: "Hi all." };
    expect(parser.parse(text, { dialect: "vllm" })).toEqual(expected);
    const stream = parser.createStream({ dialect: "vllm" });
    expect(stream.push(text)).toEqual({ reasoning: "", normalText: "" });
    expect(stream.end()).toEqual(expected);
  });
});

describe("JsonEnd", () => {
  test.each([
    ['{"a": [1, "}"]} x', 15],
    ["12", 1],
    ["-12", 2],
    ["true]", 4],
    ["trux", -1],
    ['"a\\"b" ', 6],
    ['{"a": 1]', -1],
    ['{"a": 1} ', 8],
    ["{", -1],
  ])("%j ends at %d, in one piece and in many", (text, end) => {
    expect(new JsonEnd().push(text)).toBe(end);
    const inPieces = new JsonEnd();
    const ends = [...text].map((character) => inPieces.push(character));
    const found = ends.findIndex((place) => place !== -1);
    expect(found === -1 ? -1 : found + 1).toBe(end);
  });
});

test("an action block in pieces is read as in one", () => {
  const text = call('{"a": "x", "b": [true, -1.5e3]}').slice("<|START_ACTION|>".length, -14);
  const reader = new ActionReader();
  for (const piece of [text.slice(0, 60), text.slice(60, 70), text.slice(70)]) reader.read(piece);
  expect(reader.calls).toEqual([{ name: "f", argumentsText: '{"a": "x", "b": [true, -1.5e3]}' }]);
});

test("time is linear in the number of blocks that one value is cut by", () => {
  const start = workedMs();
  const cut = '{"a": 1, '.repeat(5000).replaceAll(",", ",<|END_ACTION|><|START_ACTION|>");
  expect(readCohereTurn(call(cut), "command3").calls).toHaveLength(1);
  expect(workedMs() - start).toBeLessThan(3000);
});
