import { expect, test } from "vitest";
import { toolsFromOpenAi } from "../../tool-definition.ts";
import { toPyValue } from "../../../../python-values/src/index.ts";
import { kimiK2 } from "./kimi-k2.ts";

const tools = toolsFromOpenAi(toPyValue([{ type: "function", function: { name: "f" } }]), "tools");

test.each([
  ["2026-05", [3, 4]],
  ["0.5.15", [0, 1]],
  ["2026-08", [0, 1]],
])("calls are numbered as SGLang %s numbers them", (engineVersion, expected) => {
  const calls = ["functions.f:3", "4"].map(
    (id) => `<|tool_call_begin|>${id}<|tool_call_argument_begin|>{}<|tool_call_end|>`,
  );
  const text = `<|tool_calls_section_begin|>${calls.join("")}<|tool_calls_section_end|>`;
  const { compat } = kimiK2.parse(text, { tools, engineVersion });
  expect(compat.calls.map(({ toolIndex }) => toolIndex)).toEqual(expected);
});
