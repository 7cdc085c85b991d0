import { expect, test } from "vitest";
import { toPyValue } from "../../../packages/python-values/src/value.ts";
import { missingTool } from "./missing-tool.ts";

const tools = ["lift", "lower", "turn"].map((name) =>
  toPyValue({ type: "function", function: { name } }),
);

test("missingTool() names the first tool that a prompt does not contain", () => {
  expect(missingTool("may lift, lower and turn", tools)).toBeUndefined();
  expect(missingTool("may lift and turn", tools)).toBe("lower");
  expect(missingTool("", tools)).toBe("lift");
});

test("missingTool() finds tools in any order of the prompt", () => {
  expect(missingTool("may turn, lower and lift", tools)).toBeUndefined();
  expect(missingTool("may turn and lift", tools)).toBe("lower");
});

test("missingTool() skips definitions without a name, and accepts no tools", () => {
  expect(missingTool("", [toPyValue({ function: {} }), toPyValue(7)])).toBeUndefined();
  expect(missingTool("", null)).toBeUndefined();
});
