import { describe, expect, test } from "vitest";
import { dialects } from "../dialects/registry.ts";
import type { ReplyFinish, ReplyPart, RequestedTurn } from "../conversation.ts";
import { isConstraintIgnored, unsupportedFeatures, wantedConstraint } from "./turn-constraint.ts";

const schema = { type: "object", properties: { n: { type: "integer" } } };
const tools = ["look", "press"].map((name) => ({
  type: "function",
  function: { name, parameters: schema },
}));

function requested(more: object): RequestedTurn {
  return dialects.chat.decode({ messages: [{ role: "user", content: "Hi" }], ...more });
}

const qwen = { parser: "qwen25", reasoningOpened: false };

describe("wantedConstraint()", () => {
  test("is free without a choice or format", () => {
    for (const more of [{}, { tools }, { tools, tool_choice: "none" }, { response_format: null }]) {
      expect(wantedConstraint(requested(more), qwen)).toEqual({ type: "free" });
    }
  });

  test("constrains the text to a schema in the form of each dialect", () => {
    const { chat, responses, messages } = dialects;
    const hi = { messages: [{ role: "user", content: "Hi" }] };
    const form = { type: "json_schema", name: "n", schema };
    const requests = [
      chat.decode({ ...hi, response_format: { type: "json_schema", json_schema: form } }),
      chat.decode({ ...hi, response_format: { type: "json_object", schema } }),
      responses.decode({ input: "Hi", text: { format: form } }),
      messages.decode({ ...hi, output_config: { effort: "high", format: form } }),
      messages.decode({ ...hi, output_format: form }),
    ];
    for (const request of requests) {
      expect(wantedConstraint(request, qwen)).toEqual({
        type: "enforceable",
        what: "text format json-schema",
        constraint: { type: "json-schema", schema },
      });
    }
    expect(
      wantedConstraint(requested({ response_format: { type: "json_object" } }), qwen),
    ).toMatchObject({
      constraint: { type: "json-schema", schema: { type: "object" } },
    });
  });

  test("constrains the turn to calls in the model's format", () => {
    const tag = (name: string) => ({
      type: "tag",
      begin: `<tool_call>\n{"name": "${name}", "arguments": `,
      content: { type: "json_schema", json_schema: schema },
      end: "}\n</tool_call>",
    });
    const constraint = (names: readonly string[]) => ({
      type: "structural-tag",
      tag: {
        type: "structural_tag",
        format: {
          type: "triggered_tags",
          triggers: ["<tool_call>"],
          tags: names.map(tag),
          at_least_one: true,
          stop_after_first: false,
        },
      },
    });
    expect(wantedConstraint(requested({ tools, tool_choice: "required" }), qwen)).toEqual({
      type: "enforceable",
      what: "tool_choice required",
      constraint: constraint(["look", "press"]),
    });
    const named = { type: "function", function: { name: "press" } };
    expect(wantedConstraint(requested({ tools, tool_choice: named }), qwen)).toMatchObject({
      constraint: constraint(["press"]),
    });
  });

  const format = { type: "function", function: { name: "press" } };

  test.each<[object, string, readonly string[], object]>([
    [
      { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [format] } } },
      ...(["tool_choice allowed_tools auto", ["press"]] as const),
      { at_least_one: false, stop_after_first: false },
    ],
    [
      { tool_choice: { type: "allowed_tools", mode: "required", tools: [format] } },
      ...(["tool_choice allowed_tools required", ["press"]] as const),
      { at_least_one: true, stop_after_first: false },
    ],
    [
      { tool_choice: "required", parallel_tool_calls: false },
      ...(["tool_choice required", ["look", "press"]] as const),
      { at_least_one: true, stop_after_first: true },
    ],
  ])("constrains the turn to the calls that %j allows", (more, what, names, ending) => {
    const wanted = wantedConstraint(requested({ tools, ...more }), qwen);
    expect(wanted).toMatchObject({
      type: "enforceable",
      what,
      constraint: { tag: { format: ending } },
    });
    expect(
      names.map((name) => JSON.stringify(wanted).includes(`\\"name\\": \\"${name}\\"`)),
    ).toEqual(names.map(() => true));
    expect(JSON.stringify(wanted).match(/<tool_call>\\n/g)).toHaveLength(names.length);
  });

  test("reports that a text format is not enforced if the turn must be a call", () => {
    const features = { tools, tool_choice: "required", response_format: { type: "json_object" } };
    expect(unsupportedFeatures(requested(features))).toEqual([
      { what: "text format json-object", why: "the turn must be a call, which is not text" },
    ]);
  });

  test.each<[string, object, object, string]>([
    [
      "a model with an unknown format of calls",
      { tools, tool_choice: "required" },
      { parser: "glm45" },
      "calls as glm45 writes them cannot be described to an engine",
    ],
    [
      "a turn that begins inside its reasoning",
      { response_format: { type: "json_object" } },
      { reasoningOpened: true },
      "the turn begins inside the policy's reasoning",
    ],
    [
      "a schema beside tools that may be called",
      { tools, response_format: { type: "json_object" } },
      {},
      "the request gives tools, which the policy may call instead",
    ],
  ])("returns the reason for a missing enforcement: %s", (_, more, forms, why) => {
    expect(wantedConstraint(requested(more), { ...qwen, ...forms })).toMatchObject({
      type: "unenforceable",
      why,
    });
  });

  test.each([
    [{ tool_choice: "required" }, "a tool must be called, and the request gives none"],
    [
      { tools, tool_choice: { type: "function", function: { name: "absent" } } },
      'there is no tool "absent"',
    ],
  ])("refuses %j", (more, problem) => {
    expect(() => wantedConstraint(requested(more), qwen)).toThrow(
      `Cannot read tool_choice: ${problem}`,
    );
  });
});

describe("isConstraintIgnored()", () => {
  const said = (text: string): ReplyPart => ({ type: "text", id: "m", text });
  const called = (name: string): ReplyPart => ({
    type: "call",
    id: "i",
    callId: "c",
    name,
    text: "{}",
  });
  const choice = (name: string) => ({
    tools,
    tool_choice: { type: "function", function: { name } },
  });
  const allowed = {
    type: "allowed_tools",
    allowed_tools: { mode: "auto", tools: [choice("press").tool_choice] },
  };
  const json = { response_format: { type: "json_object" } };

  test.each<[string, object, readonly ReplyPart[], boolean]>([
    [
      "no call though one is required",
      { tools, tool_choice: "required" },
      [said("It is noon.")],
      true,
    ],
    ["a call, as required", { tools, tool_choice: "required" }, [called("look")], false],
    ["another tool than the named one", choice("press"), [called("look")], true],
    ["the named tool", choice("press"), [said("So:"), called("press")], false],
    ["a tool that is not allowed", { tools, tool_choice: allowed }, [called("look")], true],
    ["no call though none is required", { tools, tool_choice: allowed }, [said("No.")], false],
    ["text that is not JSON", json, [said("Sure: {}")], true],
    ["JSON", json, [said('{"a":'), said(" 1}")], false],
  ])("finds %s", (_, more, parts, expected) => {
    const finish: ReplyFinish = { type: "stop" };
    expect(isConstraintIgnored(requested(more), { parts, finish })).toBe(expected);
    expect(isConstraintIgnored(requested(more), { parts, finish: { type: "length" } })).toBe(false);
  });
});
