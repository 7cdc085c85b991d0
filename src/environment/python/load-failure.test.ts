import { expect, test } from "vitest";
import { describeLoadFailure } from "./load-failure.ts";
import { PythonFailure } from "./python-failure.ts";

const lacking = (environment: string, missing: string): string => {
  const facts = { type: "ModuleNotFoundError", message: "", missing };
  const failure = new PythonFailure("raised", "", facts);
  return describeLoadFailure(failure, { environment, executable: "python3" });
};

test.each([
  ["reasoning-gym:leg_counting", "reasoning_gym", " (pip install reasoning-gym)"],
  ["gem:game:GuessTheNumber-v0-easy", "gem", " (pip install gem-llm)"],
  ["gymnasium:FrozenLake-v1", "gymnasium", " (pip install 'gymnasium[toy-text]')"],
  ["gymnasium:FrozenLake-v1", "numpy", ""],
])("names the command that installs what %s lacks: %s", (environment, missing, command) => {
  expect(lacking(environment, missing)).toBe(
    `Cannot load environment ${environment}: Python python3 lacks the package ${missing}, ` +
      `install it there${command}, or name another interpreter with --python`,
  );
});
