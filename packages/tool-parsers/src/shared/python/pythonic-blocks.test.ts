import { describe, expect, test } from "vitest";
import { toolsFromOpenAi } from "../../tool-definition.ts";
import { toPyValue } from "../../../../python-values/src/index.ts";
import { findToolCallParser } from "../../registry.ts";

const tools = toolsFromOpenAi(
  toPyValue(["f", "g"].map((name) => ({ type: "function", function: { name } }))),
  "tools",
);

function attemptsOf(parser: string, text: string): string[] {
  return findToolCallParser(parser)
    .parse(text, { tools })
    .attempts.map(({ raw }) => raw);
}

describe("the calls of a list of Python calls", () => {
  test("divide its text", () => {
    expect(attemptsOf("pythonic", 'hm [f(a="x, g(b=1)"), g(b=[1, 2]), f()] so')).toEqual([
      '[f(a="x, g(b=1)"), ',
      "g(b=[1, 2]), ",
      "f()]",
    ]);
  });

  test("divide it if lines end with two characters", () => {
    expect(attemptsOf("pythonic", "[f(\r\na=1),\r\n g(\r\nb=1), f()]")).toEqual([
      "[f(\r\na=1),\r\n ",
      "g(\r\nb=1), ",
      "f()]",
    ]);
  });

  test("divide the control tokens around them", () => {
    const text = "<|tool_call_start|> [f(a=1), g()]<|tool_call_end|>";
    expect(attemptsOf("lfm2", text)).toEqual([
      "<|tool_call_start|> [f(a=1), ",
      "g()]<|tool_call_end|>",
    ]);
  });
});
