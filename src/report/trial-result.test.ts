import { expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { EvaluationTally } from "./evaluation-tally.ts";
import { isSuccessful, succeeded } from "./trial-result.ts";

test.each([
  [{ reward: 1 }, undefined, true],
  [{ reward: 1.2 }, undefined, false],
  [{ reward: 0.4 }, 0.4, true],
  [{ reward: 0.3 }, 0.4, false],
  [{ reward: 0.1, success: true }, undefined, true],
  [{ reward: 1, success: false }, undefined, false],
  [{ reward: 0.1, success: true }, 0.5, false],
])("%j with threshold %j: %j", (scored, threshold, expected) => {
  expect(succeeded(scored, threshold)).toBe(expected);
});

test("an attempt without a score is no success", () => {
  expect(isSuccessful({})).toBe(false);
});

test("an evaluation counts successes by the environment's verdict, or by a threshold", () => {
  const evaluate = (successThreshold?: number) => {
    const tally = new EvaluationTally({
      environment: "shop",
      split: "test",
      tasks: [{ taskId: "shop/test/0", taskIndex: 0 }],
      trialCount: 2,
      ...(successThreshold !== undefined && { successThreshold }),
    });
    const rows = [
      episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 0.9, success: true }),
      episodeRow({ taskIndex: 0, sampleIndex: 1, reward: 0.95, success: false }),
    ];
    for (const row of rows) tally.add({ row, trial: row.sampleIndex });
    return tally.evaluation();
  };
  const own = evaluate();
  expect(own.tasks[0]).toMatchObject({
    successCount: 1,
    trials: [{ success: true }, { success: false }],
  });
  expect(own.misses.map(({ reward }) => reward)).toEqual([0.95]);
  expect(own).not.toHaveProperty("successThreshold");
  const strict = evaluate(0.92);
  expect(strict.tasks[0]).toMatchObject({
    successCount: 1,
    trials: [{ success: false }, { success: true }],
  });
  expect(strict.successThreshold).toBe(0.92);
});
