import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createStorefront } from "../../environments/storefront/index.ts";
import { evaluate } from "../../src/cli/commands/eval.ts";
import { scriptSessions } from "../../src/cli/demo/session-scripts.ts";
import { verifyRun } from "../../src/verify/verify-run.ts";
import type { GivenSettings } from "../../src/composition/config/setting.ts";
import type { Evaluation } from "../../src/report/evaluation.ts";
import { openStoredRun } from "../../src/report/read-run.ts";
import { planRun } from "../../src/run/schedule/plan-run.ts";
import { startSglangTestServer, type SglangTestServer } from "../../src/testing/index.ts";
import { sessionScriptPolicy } from "../../src/testing/policies/session-script-policy.ts";
import { loadTokenCodec } from "../../src/tokenizer/load-codec.ts";
import { smallModelFolder } from "../support/small-model.ts";

const model = smallModelFolder;
const taskIndexes = [0, 1, 2];
const trials = 2;

let dir = "";
let server: SglangTestServer;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-eval-"));
  const environment = createStorefront();
  const plan = planRun(environment, { split: "test", taskIndexes, sampleCount: trials, seed: 0 });
  const codec = await loadTokenCodec(smallModelFolder);
  const scripts = await scriptSessions(plan, { environment, codec, mistakeRate: 0 });
  server = await startSglangTestServer({ policy: sessionScriptPolicy(scripts) });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(dir, { recursive: true });
});

async function runEval(settings: GivenSettings): Promise<string> {
  let text = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  try {
    await evaluate({ ...settings, quiet: true });
  } finally {
    write.mockRestore();
  }
  return text;
}

describe("turnwright eval", () => {
  test("plays, reports, and resumes from the existing attempts", async () => {
    const out = path.join(dir, "run");
    const flags = {
      env: "storefront",
      tasks: "0-2",
      trials,
      url: [server.url],
      model,
      user: "scripted",
      parser: "qwen25",
      format: "slime",
      out,
    };
    const text = await runEval({ ...flags, "engine-mode": "direct" });
    expect(text).toMatch(/pass\^1 +1\.000 {2}\(95 %: 0\.292 to 1\.000, Clopper-Pearson\)/);
    const { violations, isFinished, slimeRows } = await verifyRun(out);
    expect({ violations, isFinished, slimeRows }).toEqual({
      violations: [],
      isFinished: true,
      slimeRows: 6,
    });
    const evaluation = await readFile(path.join(out, "evaluation.json"), "utf8");
    expect(JSON.parse(evaluation)).toMatchObject({
      environment: "storefront",
      split: "test",
      taskCount: 3,
      trialCount: 2,
      episodes: { planned: 6, finished: 6, scored: 6, unscored: 0 },
      passHatK: { 2: { value: 1, taskCount: 3 } },
      tauBench: { averageReward: 1, passHatK: { 1: 1, 2: 1 } },
    });
    const results = JSON.parse(
      await readFile(path.join(out, "results.tau-bench.json"), "utf8"),
    ) as readonly { readonly task_id: number; readonly trial: number }[];
    const pairs = results.map(({ task_id, trial }) => `${task_id}/${trial}`);
    expect(pairs.toSorted()).toEqual(["0/0", "0/1", "1/0", "1/1", "2/0", "2/1"]);
    expect(await readFile(path.join(out, "report.md"), "utf8")).toContain("| temperature | `0` |");

    const before = server.stats.generateCount;
    const line = JSON.parse(await runEval({ resume: true, out, json: true })) as Evaluation;
    expect(line.episodes).toMatchObject({ planned: 6, finished: 6, scored: 6, unscored: 0 });
    expect(server.stats.generateCount).toEqual(before);
  });

  test("refuses to resume a folder without a run", async () => {
    await expect(openStoredRun(path.join(dir, "none"))).rejects.toThrow(
      "no such file, expected a run's folder",
    );
  });
});
