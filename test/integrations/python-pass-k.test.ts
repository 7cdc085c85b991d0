import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { episodeRow } from "../../src/episode/episode-row.fixture.ts";
import { EvaluationTally } from "../../src/report/evaluation-tally.ts";
import { python, pythonObstacle } from "../../src/python/python.fixture.ts";

const folder = fileURLToPath(new URL("../../integrations/python", import.meta.url));

const why = pythonObstacle();
if (why !== undefined) console.warn(`Skipping the comparison of pass^k with the report: ${why}`);

/** Rewards of each task's attempts; null for an unscored one. */
const rewards: readonly (readonly (number | null)[])[] = [
  [1, 1, 1, 1],
  [1, 0, 1, 0],
  [1, null, 1, 0],
  [null, null, null, 1],
  [0.9999995, 1.0000005, 1.1, 2],
  [null, null, null, null],
];

const program = `
import json, sys
from turnwright import pass_hat_k
rewards = json.load(sys.stdin)
print(json.dumps({str(k): value for k in range(1, 5) if (value := pass_hat_k(rewards, k)) is not None}))
`;

test.skipIf(why !== undefined)("pass_hat_k() of the Python package is the report's pass^k", () => {
  const taskIds = rewards.map((_, taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex }));
  const plan = { environment: "shop", split: "test", tasks: taskIds, trialCount: 4 };
  const tally = new EvaluationTally(plan);
  for (const [taskIndex, own] of rewards.entries()) {
    for (const [sampleIndex, reward] of own.entries()) {
      const row = episodeRow({ taskIndex, sampleIndex, ...(reward !== null && { reward }) });
      tally.add({ row, trial: sampleIndex });
    }
  }
  const { passHatK } = tally.evaluation();
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
  const input = JSON.stringify(rewards);
  const options = { cwd: folder, env, input, encoding: "utf8" } as const;
  const estimates = JSON.parse(execFileSync(python, ["-c", program], options)) as unknown;
  const reported = Object.entries(passHatK).map(([k, { value }]) => [k, value]);
  expect(estimates).toEqual(
    Object.fromEntries(reported.map(([k, value]) => [k, expect.closeTo(Number(value), 12)])),
  );
  expect(passHatK["1"]?.value).toBeCloseTo((1 + 0.5 + 2 / 3 + 1 + 0.5) / 5, 12);
});
