import { expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { printEvaluation } from "../cli/evaluation-text.ts";
import { ComponentTally } from "./component-tally.ts";
import { EvaluationTally } from "./evaluation-tally.ts";
import { renderMarkdownReport } from "./markdown-report.ts";

const part = (value: number, weight = 1) => ({ value, weight });

test("the mean of a component is over tasks, and its weight is there if it is always the same", () => {
  const tally = new ComponentTally();
  expect(tally.evaluation()).toBeUndefined();
  tally.add({ taskId: "a", rewardComponents: { exact: part(1), style: part(3, 0.1) } });
  tally.add({ taskId: "a", rewardComponents: { exact: part(0), style: part(5, 0.2) } });
  tally.add({ taskId: "b", rewardComponents: { exact: part(1) } });
  tally.add({ taskId: "c" });
  expect(tally.evaluation()).toMatchObject({
    exact: { mean: { value: 0.75, taskCount: 2 }, attemptCount: 3, weight: 1 },
    style: { mean: { value: 4, taskCount: 1 }, attemptCount: 2 },
  });
  expect(tally.evaluation()!["style"]).not.toHaveProperty("weight");
});

test("a report shows the components of scored attempts", () => {
  const tasks = [0, 1].map((taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex }));
  const tally = new EvaluationTally({ environment: "shop", split: "test", tasks, trialCount: 1 });
  const rewards = [
    { reward: 1.2, rewardComponents: { exact: part(1), "the style": part(2, 0.1) } },
    { reward: 0.1, rewardComponents: { exact: part(0), "the style": part(1, 0.1) } },
  ];
  for (const [taskIndex, row] of rewards.entries()) {
    tally.add({ row: episodeRow({ taskIndex, sampleIndex: 0, ...row }), trial: 0 });
  }
  const evaluation = tally.evaluation();
  const printed = printEvaluation(evaluation, "runs/a").split("\n");
  expect(printed.find((line) => line.startsWith("  components"))).toMatch(/ {2}exact 0\.500 {2}\(/);
  expect(printed.find((line) => line.includes("the style"))).toMatch(/1\.500 .*, weight 0\.1$/);
  const report = renderMarkdownReport(evaluation, []);
  expect(report).toMatch(
    /\| `exact` \| 0\.500.* \| 1 \| 2 \|\n\| `the style` \| 1\.500.* \| 0\.1 \| 2 \|\n/,
  );
});
