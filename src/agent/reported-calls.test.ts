import { describe, expect, test } from "vitest";
import { toolFromOpenAi } from "../message.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { asReported } from "./reported-calls.ts";

const tools = [
  toolFromOpenAi(
    toPyValue({
      type: "function",
      function: { name: "get_order", parameters: { type: "object" } },
    }),
    "get_order",
  ),
];

function reported(
  text: string,
  parser: string,
  { finish = "stop" }: { finish?: "stop" | "length" } = {},
) {
  const { attempts, compat } = findToolCallParser(parser).parse(text, {
    tools,
    finishReason: finish,
  });
  return asReported(attempts, compat.calls, { tools, finish }).map(
    ({ status, name, argumentsText }) => [status, name, argumentsText],
  );
}

function call(json: string): string {
  return `<tool_call>\n${json}\n</tool_call>`;
}

const good = '{"name": "get_order", "arguments": {"a": 1}}';

describe("asReported()", () => {
  test("a call with empty arguments is reported with an empty object", () => {
    const text =
      '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_order", "parameters": {}}]<|END_ACTION|>';
    const { attempts, compat } = findToolCallParser("cohere_command3").parse(text, {
      tools,
      dialect: "vllm",
    });
    expect(compat.calls).toEqual([{ name: "get_order", argumentsText: "", toolIndex: 0 }]);
    const expected = [expect.objectContaining({ status: "ok", argumentsText: "{}" })];
    expect(attempts).toEqual(expected);
    expect(asReported(attempts, compat.calls, { tools, finish: "stop" })).toEqual(expected);
  });

  test("keeps well-formed calls that the engine reports", () => {
    expect(reported(call(good), "qwen25")).toEqual([["ok", "get_order", '{"a": 1}']]);
  });

  test("refuses well-formed calls that the engine does not report", () => {
    expect(reported(`${call(good)}\n${call("{bad}")}`, "hermes")).toEqual([
      ["malformed-structure", "get_order", '{"a": 1}'],
      ["invalid-json", undefined, undefined],
    ]);
  });

  test("accepts malformed calls that the engine completes, unless the turn was cut off", () => {
    const text = "<tool_call>\n<function=get_order>\n<parameter=a>\n1\n</parameter>";
    const statusOf = (finish: "stop" | "length") => {
      const { attempts, compat } = findToolCallParser("qwen3_coder").parse(text, {
        tools,
        finishReason: finish,
      });
      expect(attempts.map(({ status }) => status)).not.toContain("ok");
      expect(compat.calls).toMatchObject([{ name: "get_order" }]);
      return asReported(attempts, compat.calls, { tools, finish });
    };
    expect(statusOf("stop")).toMatchObject([{ status: "ok", name: "get_order" }]);
    expect(statusOf("length")).toMatchObject([{ status: "truncated-by-length" }]);
  });

  test("accepts a reported call without an attempt, and refuses arguments that are not an object", () => {
    const calls = [
      { name: "get_order", argumentsText: "{}", toolIndex: 0 },
      { name: "get_order", argumentsText: "[1]", toolIndex: 0 },
      { name: "get_order", argumentsText: "{", toolIndex: 0 },
      { name: "refund", argumentsText: "{}", toolIndex: -1 },
    ];
    expect(asReported([], calls, { tools, finish: "stop" }).map(({ status }) => status)).toEqual([
      "ok",
      "non-object-arguments",
      "invalid-json",
      "unknown-tool",
    ]);
  });
});
