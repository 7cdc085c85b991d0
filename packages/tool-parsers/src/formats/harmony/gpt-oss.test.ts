import { describe, expect, test } from "vitest";
import { workedMs } from "../../worked-ms.fixture.ts";
import { toolFromOpenAi } from "../../tool-definition.ts";
import { toPyValue } from "../../../../python-values/src/index.ts";
import { gptOss } from "./gpt-oss.ts";

const tools = [
  toolFromOpenAi(
    toPyValue({
      type: "function",
      function: { name: "get_order", parameters: { type: "object" } },
    }),
    "get_order",
  ),
];

const analysis = "<|channel|>analysis<|message|>Look.<|end|>";
const whole =
  "<|start|>assistant<|channel|>commentary to=functions.get_order <|constrain|>json<|message|>{}<|call|>";

function attemptsOf(text: string) {
  return gptOss
    .parse(text, { tools })
    .attempts.map(({ status, name, span }) => [status, name, text.slice(...span)]);
}

describe("attempts in gpt-oss turns", () => {
  test("are in order with the complete header after the analysis", () => {
    expect(attemptsOf(analysis + whole)).toEqual([["ok", "get_order", whole]]);
  });

  test.each([
    [
      "without the role, which the prompt holds",
      "<|channel|>commentary to=functions.get_order <|constrain|>json<|message|>{}<|call|>",
    ],
    [
      "with the recipient beside the role, as the template writes it",
      " to=functions.get_order<|channel|>commentary json<|message|>{}<|call|>",
    ],
    [
      "with another role",
      "<|start|>user<|channel|>commentary to=get_order <|constrain|>json<|message|>{}<|call|>",
    ],
  ])("are malformed %s: the engine reports no call", (_, text) => {
    expect(attemptsOf(text)).toEqual([["malformed-structure", "get_order", text]]);
    expect(gptOss.parse(text, { tools }).compat.calls).toEqual([]);
  });

  test("are distinguished from messages to the user", () => {
    const said = "<|start|>assistant<|channel|>commentary<|message|>Wait.<|end|>";
    expect(attemptsOf(`${analysis}${said}${whole}${whole}`)).toEqual([
      ["ok", "get_order", whole],
      ["ok", "get_order", whole],
    ]);
    expect(attemptsOf(`Hi <|channel|>final<|message|>to=you<|return|>`)).toEqual([]);
  });

  test("are not closed without a call token of their own", () => {
    const open = whole.slice(0, -"<|call|>".length);
    expect(attemptsOf(open + whole)).toEqual([
      ["unclosed-block", "get_order", open],
      ["ok", "get_order", whole],
    ]);
  });

  test("are found in linear time", () => {
    const hostile = (size: number): readonly string[] => [
      `<|channel|>to=${"a".repeat(size)}`,
      `<|channel|>${" to=a".repeat(size / 5)}`,
      `<|start|>${"<|channel|>".repeat(size / 11)}`,
      "<|channel|>to=a<|message|>".repeat(size / 26),
    ];
    const timeOf = (size: number): number => {
      const start = workedMs();
      for (const text of hostile(size)) gptOss.parse(text, { tools });
      return workedMs() - start;
    };
    timeOf(10_000);
    expect(timeOf(200_000)).toBeLessThan(5_000);
  });
});
