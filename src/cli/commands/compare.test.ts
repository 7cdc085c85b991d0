import { expect, test } from "vitest";
import type { RunResults } from "../../report/collect-results.ts";
import { compareRuns } from "../../report/compare-runs.ts";
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

test("printComparison() says how many branches were left out", () => {
  const [a, b] = [results("runs/a", [0, 1]), { ...results("runs/b", [1, 0]), branchCount: 3 }];
  const text = printComparison(compareRuns(a, b), 80);
  expect(text).toMatch(/^ *branches +left out of A: 0, of B: 3$/m);
  expect(printComparison(compareRuns(a, a), 80)).not.toContain("branches");
});
