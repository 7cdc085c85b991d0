import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeSoundRun } from "../verify/sound-run.fixture.ts";
import { verifyRun } from "../verify/verify-run.ts";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { readRun } from "../api/read-run.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { openPlan } from "../run/schedule/planned-run.ts";
import type { Evaluation } from "./evaluation.ts";
import { planOpenRun } from "./open-run-plan.ts";
import { openStoredRun } from "./read-run.ts";
import { writeEvaluation } from "./write-evaluation.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-evaluation-"));
  await writeSoundRun(dir);
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const read = async (name: string): Promise<string> => await readFile(path.join(dir, name), "utf8");

const plan = {
  environment: "shop",
  split: "test",
  tasks: [0, 1, 2, 3].map((taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex })),
  trialCount: 2,
};

/** Evaluates a run that leaves open which episodes there will be, and has these by now. */
async function evaluateOpenRun(rows: readonly EpisodeRow[]): Promise<Evaluation> {
  const manifest = { format: 1, turnwright: "0", configuration: {}, found: { plan: openPlan } };
  await writeFile(path.join(dir, "run.json"), JSON.stringify(manifest));
  const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  await writeFile(path.join(dir, "episodes.jsonl"), lines);
  const run = await openStoredRun(dir);
  return await writeEvaluation(run, { plan: await planOpenRun(run) });
}

test("an evaluation has files of its own, next to the run's", async () => {
  const [names, summary] = [await readdir(dir), await read("summary.json")];
  const evaluation = await writeEvaluation(await openStoredRun(dir), { plan });
  expect((await readdir(dir)).filter((name) => !names.includes(name)).toSorted()).toEqual([
    "evaluation.json",
    "report.md",
    "results.tau-bench.json",
  ]);
  expect(JSON.parse(await read("evaluation.json"))).toEqual(JSON.parse(JSON.stringify(evaluation)));
  expect(await read("summary.json")).toEqual(summary);
  expect((await verifyRun(dir)).violations).toEqual([]);
});

test("a run with an attempt of two rows has figures on rows, which readRun() gives too", async () => {
  const evaluation = await writeEvaluation(await openStoredRun(dir), { plan });
  // 21 turns of four tokens. One stop is not in its row.
  expect(evaluation.rows).toEqual({
    attemptCount: 8,
    severalRowsCount: 1,
    rowCount: 9,
    trainedTokenCount: 83,
    rowsPerAttempt: { mean: 9 / 8, max: 2 },
    trainedTokensPerAttempt: { mean: 83 / 8, max: 16 },
    byRole: {
      main: {
        rowCount: 9,
        turnCount: 21,
        trainedTokenCount: 83,
        trainedTokenShare: 1,
        attemptCount: 8,
        averageReward: 4.5 / 7,
      },
    },
    edges: { continuation: 1 },
    untrained: { turnCount: 0, sampledTokenCount: 0, rejected: {}, undelivered: 0, other: 0 },
  });
  expect(await read("report.md")).toContain("\n| attempts with several rows | 1 of 8 |\n");
  expect((await (await readRun(dir)).evaluation()).rows).toEqual(evaluation.rows);
});

test("attempts at a repeated task have numbers of their own, in every file", async () => {
  const rows = [1, 0, 2].flatMap((groupIndex) =>
    [0, 1].map((sampleIndex) => {
      const rolloutId = `shop/test/0~${groupIndex}#${sampleIndex}`;
      return episodeRow({ taskIndex: 0, groupIndex, sampleIndex, rolloutId, reward: sampleIndex });
    }),
  );
  const evaluation = await evaluateOpenRun(rows);
  expect(evaluation.tasks[0]?.trials.map(({ trial, rolloutId }) => [trial, rolloutId])).toEqual(
    [0, 1, 2, 3, 4, 5].map((trial) => [trial, `shop/test/0~${Math.floor(trial / 2)}#${trial % 2}`]),
  );
  expect(evaluation.misses.map(({ rolloutId }) => rolloutId)).toEqual(
    [0, 1, 2].map((groupIndex) => `shop/test/0~${groupIndex}#0`),
  );
  // Three of six: C(3,k)/C(6,k).
  expect(evaluation.tauBench).toEqual({
    averageReward: 0.5,
    passHatK: { 1: 0.5, 2: 0.2, 3: 0.05, 4: 0, 5: 0, 6: 0 },
    passAtK: { 1: 0.5, 2: 0.8, 3: 0.95, 4: 1, 5: 1, 6: 1 },
  });
  const results = JSON.parse(await read("results.tau-bench.json")) as { readonly trial: number }[];
  expect(results.map(({ trial }) => trial)).toEqual([2, 3, 0, 1, 4, 5]);
  expect((await (await readRun(dir)).evaluation()).tauBench).toEqual(evaluation.tauBench);
});

test("a run that leaves open which episodes there will be has none that was not played", async () => {
  const rows = [0, 1, 2].flatMap((groupIndex) =>
    [0, 1].map((sampleIndex) => {
      const [taskIndex, pass] = [groupIndex % 2, Math.floor(groupIndex / 2)];
      const rolloutId = `shop/test/${taskIndex}~${pass}#${sampleIndex}`;
      return episodeRow({ taskIndex, groupIndex, sampleIndex, rolloutId, reward: 1 });
    }),
  );
  const evaluation = await evaluateOpenRun(rows);
  expect(evaluation).toMatchObject({ taskCount: 2, trialCount: 4 });
  expect(evaluation.episodes).toEqual({
    planned: 6,
    finished: 6,
    scored: 6,
    unscored: 0,
    unscoredBy: {},
  });
  // τ-bench's figures would count two unplanned attempts as failed.
  expect(evaluation).not.toHaveProperty("tauBench");
  expect(await read("report.md")).toContain("6 scored attempts of 6 planned.");
  expect(await (await readRun(dir)).evaluation()).toEqual(evaluation);
});

test("keeps an end that the run writes during its evaluation, and drops one that it withdraws", async () => {
  const file = path.join(dir, "summary.json");
  const summary = await read("summary.json");
  const stored = await openStoredRun(dir);
  /** Changes the run once, after the first episode that is read from it. */
  const during = (happen: () => Promise<void>) => {
    let happened: Promise<void> | undefined;
    return {
      ...stored,
      async *rows() {
        for await (const row of stored.rows()) {
          yield row;
          await (happened ??= happen());
        }
      },
    };
  };
  await rm(file);
  const ends = during(async () => await writeFile(file, summary));
  await writeEvaluation(ends, { plan });
  expect(await read("summary.json")).toEqual(summary);
  const goesOn = during(async () => await rm(file));
  await writeEvaluation(goesOn, { plan });
  expect(await readdir(dir)).not.toContain("summary.json");
});

test("branches are no trials in any file, and readRun() says the same", async () => {
  const forkedFrom = { rolloutId: "shop/test/0#0", turnIndex: 1 };
  const rows = [0, 1, 2].map((sampleIndex) => {
    const parted = sampleIndex === 0 ? {} : { forkedFrom };
    return episodeRow({ taskIndex: 0, groupIndex: 0, sampleIndex, reward: 1, ...parted });
  });
  const evaluation = await evaluateOpenRun(rows);
  expect(evaluation.episodes).toEqual({
    planned: 1,
    finished: 1,
    scored: 1,
    unscored: 0,
    unscoredBy: {},
    branches: 2,
  });
  expect(Object.keys(evaluation.passHatK)).toEqual(["1"]);
  const results = JSON.parse(await read("results.tau-bench.json")) as { readonly trial: number }[];
  expect(results.map(({ trial }) => trial)).toEqual([0]);
  expect(await (await readRun(dir)).evaluation()).toEqual(evaluation);
});

test("branches that are not played yet are planned as no trials", async () => {
  const found = {
    plan: { environment: "shop", split: "test", taskIndexes: [0, 1], sampleCount: 4 },
  };
  const manifest = { format: 1, turnwright: "0", configuration: { "branch-at": "1" }, found };
  await writeFile(path.join(dir, "run.json"), JSON.stringify(manifest));
  const first = episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 1 });
  await writeFile(path.join(dir, "episodes.jsonl"), `${JSON.stringify(first)}\n`);
  const { episodes } = await (await readRun(dir)).evaluation();
  expect(episodes).toEqual({
    planned: 2,
    finished: 1,
    scored: 1,
    unscored: 1,
    unscoredBy: { "not-played": 1 },
  });
});
