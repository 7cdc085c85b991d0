import { expect, test } from "vitest";
import { defineEnvironment } from "./define-environment.ts";
import { defineTool } from "./define-tool.ts";

const tool = { description: "Light a lamp.", execute: () => "lit" };
const environment = {
  name: "lamps",
  tasks: [{ instruction: "Light, please." }],
  policy: "You look after the lamps.",
  tools: [],
  score: () => 0,
};

test.each([
  ["isdone", "isDone"],
  ["dipose", "dispose"],
  ["repeatble", "repeatable"],
])("an environment's part %s is refused, as it would be passed over", (name, meant) => {
  expect(() => defineEnvironment({ ...environment, [name]: () => true })).toThrow(
    `Cannot define environment lamps: it has no part ${name}, did you mean ${meant}?`,
  );
});

test.each([
  ["paramaters", "parameters"],
  ["timeoutms", "timeoutMs"],
])("a tool's part %s is refused, as it would be passed over", (name, meant) => {
  expect(() => defineTool({ name: "light", ...tool, [name]: {} })).toThrow(
    `Cannot define tool light: it has no part ${name}, did you mean ${meant}?`,
  );
  expect(() =>
    defineEnvironment({ ...environment, tools: { light: { ...tool, [name]: {} } } }),
  ).toThrow(`Cannot define tool light: it has no part ${name}, did you mean ${meant}?`);
});

test("ignores members of the author's own", () => {
  const own = { ...environment, version: 3, [Symbol("mine")]: 1 };
  expect(defineEnvironment(own).name).toBe("lamps");
  const owned = { name: "light", ...tool, category: "lamps" };
  expect(defineTool(owned).name).toBe("light");
});
