import { expect, test } from "vitest";
import { compareRuns } from "../../report/compare-runs.ts";
import type { RunResults } from "../../report/run-results.ts";
import { addResult, type TaskRewards } from "../../report/task-rewards.ts";
import { printComparison } from "./compare.ts";

function results(source: string, rewards: readonly number[]): RunResults {
  const tasks = new Map<string, TaskRewards>();
  for (const [taskIndex, reward] of rewards.entries()) {
    addResult(tasks, { taskId: `storefront/test/${taskIndex}`, taskIndex, reward });
  }
  return { source, scopes: ["storefront/test"], tasks };
}

test("printComparison() fits a terminal of 40 columns, and says the same", () => {
  const comparison = compareRuns(results("runs/a", [0, 1, 0]), results("runs/b", [1, 0, 1]));
  const narrow = printComparison(comparison, 40);
  expect(Math.max(...narrow.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(40);
  const words = (text: string) => text.split(/\s+/);
  expect(words(narrow)).toEqual(words(printComparison(comparison, Infinity)));
  expect(printComparison(comparison, Infinity)).toContain(
    "  B is    better on 2, worse on 1, the same on 0\n",
  );
});
