import { expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { EvaluationTally } from "../report/evaluation-tally.ts";
import { printEvaluation } from "./evaluation-text.ts";

/** The lines of as many attempts at one task, each of this reward. */
function linesOf(trialCount: number, reward: number): readonly string[] {
  const tally = new EvaluationTally({
    environment: "shop",
    split: "test",
    trialCount,
    tasks: [{ taskId: "shop/test/0", taskIndex: 0 }],
  });
  for (let trial = 0; trial < trialCount; trial++) {
    tally.add({ row: episodeRow({ taskIndex: 0, sampleIndex: trial, reward }), trial });
  }
  return printEvaluation(tally.evaluation(), "runs/a").split("\n");
}

test("printEvaluation() shows the chances of few attempts, and of all", () => {
  const shown = linesOf(48, 1).flatMap((line) => /^ +pass\^(\d+) /.exec(line)?.[1] ?? []);
  expect(shown).toEqual(["1", "2", "3", "4", "5", "6", "7", "8", "48"]);
  expect(linesOf(48, 1).join("\n")).toMatch(/\n +other k +in the report\n/);
  expect(linesOf(9, 1).join("\n")).not.toContain("other k");
});

test("printEvaluation() claims no certainty of rewards outside 0 to 1", () => {
  expect(linesOf(2, 2).join("\n")).toMatch(
    /\n +average reward +2\.000 {2}\(95 %: –, all tasks went alike\)\n/,
  );
});

test("printEvaluation() shows a component's name in one line", () => {
  const tally = new EvaluationTally({
    environment: "shop",
    split: "test",
    trialCount: 1,
    tasks: [{ taskId: "shop/test/0", taskIndex: 0 }],
  });
  const rewardComponents = { "said\nso": { value: 0.5, weight: 2 } };
  const row = episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 1 });
  tally.add({ row: { ...row, rewardComponents }, trial: 0 });
  expect(printEvaluation(tally.evaluation(), "runs/a")).toMatch(/\n +components +said so 0\.500 /);
});

test("printEvaluation() says that it counts unplayed tasks as failed", () => {
  const tally = new EvaluationTally({
    environment: "shop",
    split: "test",
    trialCount: 2,
    tasks: [0, 1, 2, 3].map((taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex })),
  });
  for (const [taskIndex, sampleIndex, reward] of [
    [0, 0, 1],
    [0, 1, 1],
    [1, 0, 1],
  ] as const) {
    tally.add({ row: episodeRow({ taskIndex, sampleIndex, reward }), trial: sampleIndex });
  }
  expect(printEvaluation(tally.evaluation(), "runs/a")).toContain(
    "5 (not-played ×5), left out of the figures; counted as failed, pass^1 is 0.375\n",
  );
});

test("printEvaluation() shows rows by role if an attempt has several", () => {
  const tally = new EvaluationTally({
    environment: "shop",
    split: "test",
    trialCount: 1,
    tasks: [{ taskId: "shop/test/0", taskIndex: 0 }],
  });
  tally.add({ row: episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 1 }), trial: 0 }, [
    { turnCount: 2, trainedTokenCount: 9, lineage: { role: "main" } },
    { turnCount: 1, trainedTokenCount: 3, lineage: { role: "subagent" } },
  ]);
  const lines = printEvaluation(tally.evaluation(), "runs/a").split("\n");
  const at = lines.findIndex((line) => line.includes("attempts with several rows"));
  expect(lines.slice(at, at + 7)).toEqual([
    "  attempts with several rows  1 of 1",
    "  rows                        2 (2.0 an attempt, at most 2)",
    "  trained tokens              12 (12.0 an attempt, at most 12)",
    "  links                       –",
    "  sampled, not trained        –",
    "  by role                     main: rows 1, turns 2, trained tokens 9 (75.0 %), mean reward 1.000",
    "                              sub-agent: rows 1, turns 1, trained tokens 3 (25.0 %), mean reward 1.000",
  ]);
  expect(linesOf(2, 1).join("\n")).not.toContain("rows");
});

test("printEvaluation() counts no attempts as failed if tasks were planned with different numbers of attempts", () => {
  const tally = new EvaluationTally({
    environment: "shop",
    split: "test",
    trialCount: 4,
    isBranching: true,
    tasks: [0, 1].map((taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex })),
  });
  tally.add({ row: episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 1 }), trial: 0 });
  const failure = { party: "user", code: "user/timeout", message: "no reply" } as const;
  const failed = { outcome: "failed", stopReason: "failure", failure } as const;
  tally.add({ row: episodeRow({ taskIndex: 1, sampleIndex: 0, ...failed }), trial: 0 });
  expect(printEvaluation(tally.evaluation(), "runs/a")).toContain("left out of the figures\n");
});
