import { expect, test } from "vitest";
import { toolsFromOpenAi } from "../../tool-definition.ts";
import { toPyValue } from "../../../../python-values/src/index.ts";
import { llama3 } from "./llama3.ts";

const tools = toolsFromOpenAi(
  toPyValue([{ type: "function", function: { name: "search" } }]),
  "tools",
);

const call = '{"name": "search", "parameters": {}}';

test.each([
  [`<|python_tag|>${call}😀`, "", 1],
  [`<|python_tag|>${call}😀 done`, "done", 1],
  [`<|python_tag|>${call}😀${call}`, "", 2],
  [`<|python_tag|>{'name': 'search'}😀 done`, "done", 1],
  [`<|python_tag|>${call}é done`, "done", 1],
  [`<|python_tag|>😀 none`, "😀 none", 0],
])("the complete character after an object of %s is skipped", (text, normalText, callCount) => {
  const { compat } = llama3.parse(text, { tools });
  expect(compat.normalText).toBe(normalText);
  expect(compat.calls).toHaveLength(callCount);
});
