import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { countIrregular, tauBenchMetrics } from "./tau-bench-metrics.ts";
import type { TrialResult } from "./trial-result.ts";

function results(rows: readonly (readonly [number, number, number])[]): TrialResult[] {
  return rows.map(([task, trial, reward]) => ({ task: String(task), trial, reward }));
}

describe("tauBenchMetrics()", () => {
  test("takes a missing trial for a failed one", () => {
    const metrics = tauBenchMetrics(
      results([
        [0, 0, 1],
        [0, 1, 1],
        [1, 0, 1],
      ]),
    );
    expect(metrics).toEqual({
      averageReward: 1,
      passHatK: { 1: 0.75, 2: 0.5 },
      passAtK: { 1: 0.75, 2: 1 },
    });
  });

  test("refuses no results", () => {
    expect(() => tauBenchMetrics([])).toThrow(RangeError);
  });

  describe("returns what the original's display_metrics() prints", async () => {
    const file = new URL("../../test/tau-bench/recorded/pass-hat-k.json", import.meta.url);
    const goldens = JSON.parse(await readFile(file, "utf8")) as Golden[];

    test.each(goldens.map((golden) => [golden.kind, golden] as const))("%s", (_, golden) => {
      const { averageReward, passHatK } = tauBenchMetrics(results(golden.results));
      expect(averageReward).toBe(golden.average_reward);
      expect(passHatK).toEqual(golden.pass_hat_k);
    });
  });
});

interface Golden {
  readonly kind: string;
  readonly results: readonly (readonly [number, number, number])[];
  readonly average_reward: number;
  readonly pass_hat_k: Readonly<Record<string, number>>;
}

describe("countIrregular()", () => {
  test("counts missing and repeated trials", () => {
    const rows = results([
      [0, 0, 1],
      [0, 0, 1],
      [0, 1, 1],
      [1, 0, 0],
    ]);
    expect(countIrregular(rows)).toEqual({ missingCount: 1, duplicateCount: 1 });
  });
});
