import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { EvaluationTally } from "./evaluation-tally.ts";
import { renderMarkdownReport } from "./markdown-report.ts";

const difference = {
  state: [{ table: "orders", record: "#1", field: "status", wanted: "cancelled", got: "pending" }],
  missingCalls: [{ name: "cancel", argumentsText: '{"id": "#1"}' }],
  extraCalls: [],
  missingOutputs: ["10"],
};

function tally(): EvaluationTally {
  const tally = new EvaluationTally({
    environment: "shop",
    split: "test",
    tasks: [0, 1, 2].map((taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex })),
    trialCount: 2,
    prices: { inputUsd: 1, outputUsd: 10 },
  });
  const turn = {
    turnIndex: 0,
    text: "",
    finish: "stop" as const,
    sampledTokenCount: 20,
    promptTokenCount: 80,
    cachedTokenCount: 50,
    attemptCounts: {},
    steps: [],
    engineMs: 100,
    environmentMs: 10,
  };
  const rows = [
    episodeRow({ taskIndex: 1, sampleIndex: 1, reward: 0, rewardDetails: { difference } }),
    episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 1, turns: [turn] }),
    episodeRow({ taskIndex: 0, sampleIndex: 1, reward: 1, durationMs: 1_500 }),
    episodeRow({
      taskIndex: 1,
      sampleIndex: 0,
      reward: 0,
      outcome: "truncated",
      stopReason: "max-turns",
      userUsage: { callCount: 1, inputTokenCount: 1, outputTokenCount: 1, costUsd: 0.25 },
    }),
    episodeRow({
      taskIndex: 2,
      sampleIndex: 0,
      outcome: "failed",
      stopReason: "failure",
      failure: { party: "user", code: "user/timeout", message: "no reply | `ever`" },
    }),
    episodeRow({ taskIndex: 9, sampleIndex: 0, reward: 1 }),
  ];
  for (const row of rows) tally.add({ row, trial: row.sampleIndex });
  return tally;
}

describe("EvaluationTally", () => {
  const evaluation = tally().evaluation();

  test("leaves attempts without a score out of the figures, and says so", () => {
    expect(evaluation.episodes).toEqual({
      planned: 6,
      finished: 5,
      scored: 4,
      unscored: 2,
      unscoredBy: { "failed/user": 1, "not-played": 1 },
    });
    expect(evaluation.averageReward).toMatchObject({ value: 0.5, taskCount: 2 });
    expect(evaluation.passHatK["1"]).toMatchObject({ value: 0.5, taskCount: 2 });
    expect(evaluation.passHatK["2"]).toMatchObject({ value: 0.5, taskCount: 2 });
    expect(evaluation.passAtK["2"]).toMatchObject({ value: 0.5, taskCount: 2 });
  });

  test("also gives τ-bench's figures, which count unscored attempts as failed", () => {
    expect(evaluation.tauBench).toEqual({
      averageReward: 0.4,
      passHatK: { 1: 1 / 3, 2: 1 / 3 },
      passAtK: { 1: 1 / 3, 2: 1 / 3 },
    });
  });

  test("counts failures by party and code, and why there was no success", () => {
    expect(evaluation.failures).toEqual({ byParty: { user: 1 }, byCode: { "user/timeout": 1 } });
    expect(evaluation.outcomes).toEqual({ completed: 3, truncated: 1, failed: 1 });
    expect(evaluation.missCounts).toEqual({
      notEnded: 1,
      wrongState: 1,
      missingOutputs: 1,
      other: 0,
    });
    expect(evaluation.misses.map(({ rolloutId }) => rolloutId)).toEqual([
      "shop/test/1#0",
      "shop/test/1#1",
    ]);
  });

  test("sums up tokens, cost and time", () => {
    expect(evaluation.tokens).toEqual({
      sampled: 100,
      prompt: 80,
      cachedPrompt: 50,
      userInput: 121,
      userOutput: 13,
    });
    expect(evaluation.costUsd.policy).toBeCloseTo((80 + 1_000) / 1e6, 12);
    expect(evaluation.costUsd.user).toBe(0.25);
    expect(evaluation.time).toEqual({
      episodeMs: { mean: 700, median: 500, p95: 1_500, max: 1_500 },
      engineMs: 100,
      environmentMs: 10,
      spanMs: 1_500,
    });
  });

  test("lists tasks in the plan's order, with attempts in theirs", () => {
    expect(evaluation.tasks[1]).toEqual({
      taskId: "shop/test/1",
      taskIndex: 1,
      trials: [
        {
          trial: 0,
          rolloutId: "shop/test/1#0",
          reward: 0,
          outcome: "truncated",
          stopReason: "max-turns",
        },
        {
          trial: 1,
          rolloutId: "shop/test/1#1",
          reward: 0,
          outcome: "completed",
          stopReason: "user-left",
        },
      ],
      scoredCount: 2,
      successCount: 0,
      averageReward: 0,
    });
    expect(evaluation.tasks[2]).toMatchObject({ scoredCount: 0, successCount: 0 });
    expect(evaluation.tasks[2]).not.toHaveProperty("averageReward");
  });

  test("counts attempts beyond the plan as planned, so that no unscored one is lost", () => {
    const tally = new EvaluationTally({
      environment: "shop",
      split: "test",
      trialCount: 1,
      tasks: [0, 1].map((taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex })),
    });
    const failure = { party: "user", code: "user/timeout", message: "no reply" } as const;
    const failed = { outcome: "failed", stopReason: "failure", failure } as const;
    for (const trial of [0, 1, 2]) {
      const end = trial === 0 ? { reward: 1 } : failed;
      tally.add({ row: episodeRow({ taskIndex: 0, sampleIndex: trial, ...end }), trial });
    }
    expect(tally.evaluation().episodes).toEqual({
      planned: 4,
      finished: 3,
      scored: 1,
      unscored: 3,
      unscoredBy: { "failed/user": 2, "not-played": 1 },
    });
  });

  test("leaves branches out of all figures, and counts them", () => {
    const tally = new EvaluationTally({
      environment: "shop",
      split: "test",
      trialCount: 3,
      tasks: [0, 1].map((taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex })),
    });
    for (const taskIndex of [0, 1]) {
      const row = episodeRow({ taskIndex, sampleIndex: 0, reward: 1 - taskIndex });
      tally.add({ row, trial: 0 });
      const branch = episodeRow({ taskIndex, sampleIndex: 1, reward: 1 });
      tally.add({ row: branch, trial: 1, isBranch: true });
    }
    const evaluation = tally.evaluation();
    expect(evaluation.episodes).toEqual({
      planned: 4,
      finished: 2,
      scored: 2,
      unscored: 2,
      branches: 2,
      unscoredBy: { "not-played": 2 },
    });
    expect(evaluation.averageReward).toMatchObject({ value: 0.5, taskCount: 2 });
    expect(evaluation.passHatK["1"]).toMatchObject({ value: 0.5, taskCount: 2 });
    expect(Object.keys(evaluation.passHatK)).toEqual(["1"]);
    expect(evaluation).not.toHaveProperty("tauBench");
    expect(evaluation.tasks.map(({ trials }) => trials.length)).toEqual([1, 1]);
    expect(evaluation.tokens.sampled).toBe(40);
    const left = "**2 branches are left out** of all that this report says.";
    expect(renderMarkdownReport(evaluation, [])).toContain(left);
  });

  test("plans no trial for an attempt that branches from another one", () => {
    const tasks = [0, 1, 2, 3].map((taskIndex) => ({
      taskId: `shop/test/${taskIndex}`,
      taskIndex,
    }));
    const tally = new EvaluationTally({
      environment: "shop",
      split: "test",
      trialCount: 4,
      tasks,
      isBranching: true,
    });
    const failure = { party: "engine", code: "engine/unreachable", message: "gone" } as const;
    const failed = { outcome: "failed", stopReason: "failure", failure } as const;
    // The first task has no attempts, and one branch is left of the last task's first attempt.
    tally.add({ row: episodeRow({ taskIndex: 1, sampleIndex: 0, reward: 1 }), trial: 0 });
    tally.add({ row: episodeRow({ taskIndex: 2, sampleIndex: 0, ...failed }), trial: 0 });
    tally.add({ row: episodeRow({ taskIndex: 3, sampleIndex: 0, reward: 1 }), trial: 0 });
    for (const trial of [1, 3]) {
      const row = episodeRow({ taskIndex: 3, sampleIndex: trial, reward: 1 });
      tally.add({ row, trial, isBranch: true });
    }
    expect(tally.evaluation().episodes).toEqual({
      planned: 1 + 1 + 4 + 1,
      finished: 3,
      scored: 2,
      unscored: 5,
      branches: 2,
      unscoredBy: { "failed/engine": 1, "not-played": 4 },
    });
  });

  test("has no figures without episodes", () => {
    const nothing = new EvaluationTally({
      environment: "shop",
      split: "test",
      tasks: [{ taskId: "shop/test/0", taskIndex: 0 }],
      trialCount: 1,
    }).evaluation();
    expect(nothing).not.toHaveProperty("averageReward");
    expect(nothing).not.toHaveProperty("tauBench");
    expect(nothing.passHatK).toEqual({});
    expect(renderMarkdownReport(nothing, [])).toContain("No episode is scored.");
  });
});

describe("renderMarkdownReport()", () => {
  const report = renderMarkdownReport(tally().evaluation(), [["model", "a | b"]]);

  test("shows the figures, the tasks and the failures", () => {
    expect(report).toContain("| model | `a \\| b` |");
    expect(report).toContain(
      "**2 attempts have no score** (failed/user ×1, not-played ×1). They are left out of the figures rather than " +
        "counted as failed: so counted, the average reward is 0.333.",
    );
    expect(report).toContain(
      "| 1 | 0.500 (0.013 to 0.987, Clopper-Pearson) | 0.500 (0.013 to 0.987, Clopper-Pearson) | 2 | 0.333 |",
    );
    expect(report).toContain("| `shop/test/1` | 0.000 | 0 of 2 | ✗ ✗ |");
    expect(report).toContain("| `shop/test/2` | – | 0 of 0 | – |");
    expect(report).toContain(
      '- `shop/test/1#1`: reward 0.000, user-left\n  - `state: orders["#1"] status: wanted ' +
        '"cancelled", got "pending"`\n  - `not called: cancel {"id": "#1"}`\n  - `not said: "10"`',
    );
    expect(report).toContain("| `shop/test/2#0` | failed | user/timeout |");
  });

  test("counts the shared prefix of a fork only once, because it was played and paid for once", () => {
    const turn = {
      text: "",
      finish: "stop" as const,
      attemptCounts: {},
      steps: [],
      sampledTokenCount: 20,
      promptTokenCount: 80,
      cachedTokenCount: 50,
      engineMs: 100,
      environmentMs: 10,
    };
    const turns = [0, 1, 2].map((turnIndex) => ({ ...turn, turnIndex }));
    const usage = { callCount: 2, inputTokenCount: 10, outputTokenCount: 4 };
    const row = episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 1, turns, userUsage: usage });
    const counts = { ...row.counts, turnCount: 3, toolCallCount: 3, formatErrorCount: 1 };
    const shared = {
      turnCount: 2,
      toolCallCount: 2,
      formatErrorCount: 1,
      userUsage: { callCount: 1, inputTokenCount: 6, outputTokenCount: 3 },
    };
    const tally = new EvaluationTally({
      environment: "shop",
      split: "test",
      trialCount: 2,
      tasks: [{ taskId: "shop/test/0", taskIndex: 0 }],
      prices: { inputUsd: 1_000_000, outputUsd: 0 },
    });
    for (const trial of [0, 1]) tally.add({ row: { ...row, counts, shared }, trial });
    expect(tally.evaluation()).toMatchObject({
      turnCount: 2,
      toolCallCount: 2,
      formatErrorCount: 0,
      tokens: { prompt: 160, cachedPrompt: 100, userInput: 8, userOutput: 2 },
      costUsd: { policy: 160 },
    });
  });
});
