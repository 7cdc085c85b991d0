import { expect, test } from "vitest";
import { toolsFromOpenAi, type ToolDefinition } from "./tool-definition.ts";
import { toPyValue } from "../../python-values/src/index.ts";
import { createParseContext } from "./parse-context.ts";

const named = (name: string) => ({ type: "function", function: { name } });
const [f, g, h] = toolsFromOpenAi(toPyValue(["f", "g", "h"].map(named)), "tools") as [
  ToolDefinition,
  ToolDefinition,
  ToolDefinition,
];

test("tools have their positions in their own list, even if another list starts with the same tools", () => {
  const positions = (tools: readonly ToolDefinition[]) => [
    ...createParseContext({ tools }).toolPositions,
  ];
  const fg = [
    ["f", 0],
    ["g", 1],
  ];
  expect(positions([f, g])).toEqual(fg);
  expect(positions([f, h, f])).toEqual([
    ["f", 2],
    ["h", 1],
  ]);
  expect(positions([f])).toEqual([["f", 0]]);
  expect(positions([f, g])).toEqual(fg);
  expect(positions([])).toEqual([]);
  const changed = [f, g];
  expect(positions(changed)).toEqual(fg);
  changed.push(h);
  expect(positions(changed)).toEqual([...fg, ["h", 2]]);
});
