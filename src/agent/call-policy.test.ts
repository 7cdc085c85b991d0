import { describe, expect, test } from "vitest";
import { toolFromOpenAi } from "../message.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import type { Attempt } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { decideCall, repairableStatuses, type CallPolicy } from "./call-policy.ts";

const tools = ["get_order", "cancel_order"].map((name) =>
  toolFromOpenAi(
    toPyValue({
      type: "function",
      function: {
        name,
        parameters: { type: "object", properties: { order_id: { type: "string" } } },
      },
    }),
    name,
  ),
);

/** Returns the decision about the only attempt in a text. */
function decide(text: string, policy: CallPolicy = {}, parserName = "qwen25") {
  const { attempts } = findToolCallParser(parserName).parse(text, { tools, finishReason: "stop" });
  expect(attempts).toHaveLength(1);
  return decideCall(attempts[0]!, policy, tools);
}

function call(json: string): string {
  return `<tool_call>\n${json}\n</tool_call>`;
}

const good = '{"name": "get_order", "arguments": {"order_id": "#W1"}}';
const performed = {
  type: "perform",
  name: "get_order",
  arguments: new Map([["order_id", "#W1"]]),
};

describe("decideCall()", () => {
  test("executes valid calls only", () => {
    expect(decide(call(good))).toEqual({ ...performed, isRepaired: false });
    expect(decide(call(good.slice(0, -1)))).toEqual({
      type: "refuse",
      status: "invalid-json",
      observation: "Error: the tool call is not valid JSON",
    });
  });

  test.each([
    [
      call('{"name": "get_order", "arguments": {"order_id": 1}}'),
      "schema-mismatch",
      "Error: the arguments do not fit the parameters of the tool: ",
    ],
    [
      `${call(good)} And now?`,
      "trailing-text",
      "Error: not executed, a tool call must be the end of the turn",
    ],
  ] as const)("refuses %j if %s is refused", (text, note, observation) => {
    expect(decide(text)).toMatchObject({ type: "perform", isRepaired: false });
    const decision = decide(text, { refuse: [note] });
    expect(decision).toMatchObject({ type: "refuse", status: note });
    expect(decision).toHaveProperty("observation", expect.stringContaining(observation));
  });

  test("refuses a repeated call, and an unreported one, if the policy says so", () => {
    const parser = findToolCallParser("qwen25");
    const [, second] = parser.parse(`${call(good)}\n${call(good)}`, { tools }).attempts;
    expect(decideCall(second!, { refuse: ["duplicate-call"] }, tools)).toEqual({
      type: "refuse",
      status: "duplicate-call",
      observation: "Error: not executed, the same call was made before in this turn",
    });
    const hermes = findToolCallParser("hermes");
    const [first] = hermes.parse(`${call(good)}\n${call("{bad}")}`, { tools }).attempts;
    expect(decideCall(first!, {}, tools)).toMatchObject({ type: "perform" });
    expect(decideCall(first!, { refuse: ["malformed-structure"] }, tools)).toEqual({
      type: "refuse",
      status: "malformed-structure",
      observation:
        "Error: the tool call is malformed: the engine's parser reports no such call from this text",
    });
  });

  test.each([
    ["invalid-json", call('{"name": "get_order", "arguments": {"order_id": "#W1",}}')],
    ["invalid-json", call('{"name": "get_order", "arguments": {"order_id": "#W1"}')],
    ["invalid-json", call("{'name': 'get_order', 'arguments': {'order_id': '#W1'}}")],
    ["unclosed-block", `<tool_call>\n${good}`],
    ["malformed-structure", `<tool_call>${good}</tool_call>`],
    [
      "double-encoded-arguments",
      call('{"name": "get_order", "arguments": "{\\"order_id\\": \\"#W1\\"}"}'),
    ],
  ] as const)("repairs %s only if the policy says so: %s", (status, text) => {
    expect(decide(text)).toMatchObject({ type: "refuse", status });
    const others = repairableStatuses.filter((other) => other !== status);
    expect(decide(text, { repair: others })).toMatchObject({ type: "refuse", status });
    expect(decide(text, { repair: [status] })).toEqual({ ...performed, isRepaired: true });
  });

  test("repairs empty values to no arguments, and no other value", () => {
    for (const empty of ["null", '""', "[]"]) {
      const text = call(`{"name": "get_order", "arguments": ${empty}}`);
      expect(decide(text, { repair: ["non-object-arguments"] })).toEqual({
        type: "perform",
        name: "get_order",
        arguments: new Map(),
        isRepaired: true,
      });
    }
    const text = call('{"name": "get_order", "arguments": [1]}');
    expect(decide(text, { repair: ["non-object-arguments"] })).toMatchObject({ type: "refuse" });
  });

  test("repairs arguments in a format with the name beside them", () => {
    const text =
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_order:0" +
      '<|tool_call_argument_begin|>{"order_id": "#W1",}<|tool_call_end|><|tool_calls_section_end|>';
    expect(decide(text, { repair: ["invalid-json"] }, "kimi_k2")).toEqual({
      ...performed,
      isRepaired: true,
    });
  });

  test("does not repair a call that broke off within its arguments", () => {
    const text = '<tool_call>\n{"name": "get_order", "arguments": {"order_id": "#W';
    expect(decide(text, { repair: repairableStatuses })).toEqual({
      type: "refuse",
      status: "unclosed-block",
      observation: "Error: the tool call is not closed",
    });
  });

  test("does not repair a call of an unknown tool", () => {
    const text = '<tool_call>\n{"name": "refund", "arguments": {}}';
    const policy: CallPolicy = { repair: ["unclosed-block"] };
    expect(decide(text, policy)).toMatchObject({ type: "refuse", status: "unclosed-block" });
    expect(decide(text, { ...policy, unknownTools: "perform" })).toMatchObject({
      type: "perform",
      name: "refund",
    });
  });

  test("no option executes a call that was cut off or is inside the reasoning", () => {
    const everything: CallPolicy = { unknownTools: "perform", repair: repairableStatuses };
    const [attempt] = findToolCallParser("qwen25").parse(call(good), {
      tools,
      finishReason: "length",
    }).attempts;
    expect(decideCall(attempt!, everything, tools)).toEqual({
      type: "refuse",
      status: "truncated-by-length",
      observation: "Error: the tool call was cut off",
    });
    const draft: Attempt = { ...attempt!, status: "in-reasoning" };
    expect(decideCall(draft, everything, tools)).toEqual({
      type: "refuse",
      status: "in-reasoning",
      observation: "Error: not executed, the tool call stands inside the reasoning",
    });
  });
});
