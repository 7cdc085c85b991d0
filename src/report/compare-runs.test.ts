import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { collectResults, type RunResults } from "./collect-results.ts";
import { compareRuns } from "./compare-runs.ts";
import { readRunResults } from "./run-results.ts";
import { signTest } from "./statistics/sign-test.ts";

function results(source: string, rewards: Readonly<Record<number, readonly number[]>>): RunResults {
  return {
    source,
    scopes: ["shop/test"],
    tasks: new Map(
      Object.entries(rewards).map(([index, list]) => {
        const [taskId, unscoredCount] = [`shop/test/${index}`, list.length === 0 ? 1 : 0];
        return [taskId, { taskId, taskIndex: Number(index), rewards: list, unscoredCount }];
      }),
    ),
  };
}

describe("compareRuns()", () => {
  test("pairs tasks, counts wins, losses and ties, and tests them", () => {
    const a = results("a", { 0: [0], 1: [0], 2: [1], 3: [1], 4: [], 5: [1] });
    const b = results("b", { 3: [1], 2: [0], 1: [1], 0: [1], 4: [1], 6: [0] });
    const comparison = compareRuns(a, b);
    expect(comparison).toMatchObject({
      averageReward: { a: 0.5, b: 0.75 },
      winCount: 2,
      lossCount: 1,
      tieCount: 1,
      pValue: 1,
      test: "mcnemar",
      onlyInA: 1,
      onlyInB: 2,
      unscored: { a: 1, b: 0 },
    });
    expect(comparison.difference).toMatchObject({ value: 0.25, taskCount: 4 });
    expect(comparison.tasks.map(({ verdict }) => verdict)).toEqual([
      "better",
      "better",
      "worse",
      "same",
    ]);
  });

  test("gives an interval within what pass rates can differ by", () => {
    const [none, all] = [results("a", { 0: [0], 1: [0] }), results("b", { 0: [1], 1: [1] })];
    expect(compareRuns(none, all).difference).toMatchObject({ value: 1, high: 1 });
    expect(compareRuns(all, none).difference).toMatchObject({ value: -1, low: -1 });
    // 1 - 0.025 ** (1 / 2).
    expect(compareRuns(none, none).difference.high).toBeCloseTo(0.84189, 5);
    const much = results("c", { 0: [5], 1: [9] });
    expect(compareRuns(none, much).difference).toMatchObject({ value: 7, method: "student-t" });
    expect(compareRuns(none, much).difference.high).toBeGreaterThan(9);
  });

  test("takes attempts of a task together", () => {
    const a = results("a", { 0: [1, 0, 0], 1: [1, 1] });
    const b = results("b", { 0: [1, 1], 1: [1, 0] });
    expect(compareRuns(a, b)).toMatchObject({ winCount: 1, lossCount: 1, test: "sign" });
  });

  test("finds no difference if rewards differ only by rounding", () => {
    const a = results("a", { 0: [0.1, 0.2, 0.3] });
    const b = results("b", { 0: [0.3, 0.2, 0.1] });
    const comparison = compareRuns(a, b);
    expect(comparison.tieCount).toBe(1);
    expect(comparison.difference).toEqual(compareRuns(a, a).difference);
    expect(comparison.difference).toMatchObject({ value: 0, low: -0.975, high: 0.975 });
  });

  test("refuses runs without common tasks", () => {
    expect(() => compareRuns(results("a", { 0: [1] }), results("b", { 1: [1] }))).toThrow(
      "no task is scored in both",
    );
    const other = { ...results("b", { 0: [1] }), scopes: ["shop/train"] };
    expect(() => compareRuns(results("a", { 0: [1] }), other)).toThrow(
      "one is of shop/test, the other of shop/train",
    );
  });
});

describe("signTest()", () => {
  // As scipy.stats.binomtest(wins, wins + losses) gives them.
  test.each([
    [0, 0, 1],
    [1, 0, 1],
    [5, 0, 0.0625],
    [3, 3, 1],
    [8, 2, 0.109375],
    [20, 5, 0.004077315330505371],
  ])("%i wins, %i losses", (winCount, lossCount, pValue) => {
    expect(signTest({ winCount, lossCount })).toBeCloseTo(pValue, 15);
    expect(signTest({ winCount: lossCount, lossCount: winCount })).toBeCloseTo(pValue, 15);
  });

  test("stays within range for thousands of tasks", () => {
    expect(signTest({ winCount: 2_000, lossCount: 2_000 })).toBe(1);
    expect(signTest({ winCount: 2_100, lossCount: 1_900 })).toBeCloseTo(0.0016, 3);
  });
});

describe("collectResults()", () => {
  test("says of which environments and splits the attempts are, and leaves branches out", () => {
    const forkedFrom = { rolloutId: "shop/test/3#0", turnIndex: 1 };
    const attempts = [
      episodeRow({ taskIndex: 3, sampleIndex: 0, reward: 0 }),
      episodeRow({ taskIndex: 3, sampleIndex: 1, reward: 1, forkedFrom }),
      episodeRow({ taskIndex: 3, sampleIndex: 0, reward: 0.5, split: "train" }),
    ];
    const collected = collectResults("a", attempts);
    expect(collected).toEqual({
      source: "a",
      scopes: ["shop/test", "shop/train"],
      branchCount: 1,
      tasks: new Map([
        ["shop/test/3", { taskId: "shop/test/3", taskIndex: 3, rewards: [0], unscoredCount: 0 }],
        [
          "shop/train/3",
          { taskId: "shop/train/3", taskIndex: 3, rewards: [0.5], unscoredCount: 0 },
        ],
      ]),
    });
    expect(compareRuns(collected, collected).branches).toEqual({ a: 1, b: 1 });
  });
});

describe("readRunResults()", () => {
  test("reads a run's folder and a results file of τ-bench", async () => {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-compare-"));
    try {
      const manifest = {
        format: 1,
        turnwright: "0",
        configuration: { env: "shop", split: "test" },
      };
      await writeFile(path.join(dir, "run.json"), JSON.stringify(manifest));
      const rows = [
        episodeRow({ taskIndex: 3, sampleIndex: 0, reward: 1 }),
        episodeRow({ taskIndex: 3, sampleIndex: 1, outcome: "failed", stopReason: "failure" }),
      ];
      const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
      await writeFile(path.join(dir, "episodes.jsonl"), lines);
      const folder = await readRunResults(dir);
      expect(folder.scopes).toEqual(["shop/test"]);
      expect([...folder.tasks]).toEqual([
        ["shop/test/3", { taskId: "shop/test/3", taskIndex: 3, rewards: [1], unscoredCount: 1 }],
      ]);
      const file = path.join(dir, "results.json");
      await writeFile(file, '[{"task_id": 3, "reward": 0.0, "info": {"x": NaN}, "trial": 0}]');
      const fromFile = await readRunResults(file);
      expect([...fromFile.tasks]).toEqual([
        ["3", { taskId: "3", taskIndex: 3, rewards: [0], unscoredCount: 0 }],
      ]);
      const brokenOff = '{"task_id": 3, "reward": 0.0, "info": {"error": "no answer"}, "trial": 1}';
      const notANumber = '{"task_id": 3, "reward": NaN, "info": {}, "trial": 2}';
      const odd = path.join(dir, "odd.json");
      await writeFile(odd, `[{"task_id": 3, "reward": 1.0}, ${brokenOff}, ${notANumber}]`);
      expect([...(await readRunResults(odd)).tasks]).toEqual([
        ["3", { taskId: "3", taskIndex: 3, rewards: [1], unscoredCount: 2 }],
      ]);
      expect(compareRuns(folder, fromFile).tasks[0]).toMatchObject({
        taskId: "shop/test/3",
        a: 1,
        b: 0,
      });
      // Task numbers no longer distinguish two splits.
      const other = episodeRow({ taskIndex: 3, sampleIndex: 0, reward: 0, split: "train" });
      await appendFile(path.join(dir, "episodes.jsonl"), `${JSON.stringify(other)}\n`);
      const mixed = await readRunResults(dir);
      expect(mixed.scopes).toEqual(["shop/test", "shop/train"]);
      expect([...mixed.tasks.values()]).toEqual([
        { taskId: "shop/test/3", taskIndex: 3, rewards: [1], unscoredCount: 1 },
        { taskId: "shop/train/3", taskIndex: 3, rewards: [0], unscoredCount: 0 },
      ]);
      expect(compareRuns(mixed, folder)).toMatchObject({ onlyInA: 1, onlyInB: 0, tieCount: 1 });
      expect(compareRuns(mixed, mixed).tasks.map(({ taskId }) => taskId)).toEqual([
        "shop/test/3",
        "shop/train/3",
      ]);
      expect(() => compareRuns(mixed, fromFile)).toThrow(
        `Cannot compare ${dir} with a results file, which knows tasks by their numbers alone: shop/test/3 and ` +
          "shop/train/3 both have number 3, expected runs' folders",
      );
      await writeFile(file, '[{"task_id": 3}]');
      await expect(readRunResults(file)).rejects.toThrow(
        "[0]: expected numbers task_id and reward",
      );
      await expect(readRunResults(path.join(dir, "none"))).rejects.toThrow(
        "expected a run's folder or a τ-bench results file",
      );
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});
