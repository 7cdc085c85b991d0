import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { figuresOf } from "../model/lists/run-figures.ts";
import { appendEpisode, makeEpisode, writeViewedRun } from "../viewed-run.fixture.ts";
import { openRuns } from "./run-catalog.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-catalog-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

function episode(id: string, reward: number) {
  return { row: makeEpisode(id, [{}], { reward, startedAtMs: 5_000 }), samples: [] };
}

async function write(name: string, rewards: readonly number[]): Promise<void> {
  const episodes = rewards.map((reward, index) => episode(`shop/test/${index}#0`, reward));
  await writeViewedRun(path.join(dir, name), episodes);
}

test("a folder of runs has the runs below it, with their figures, and finds new ones", async () => {
  await write("first", [0, 1]);
  await write("more/second", [1, 1]);
  await mkdir(path.join(dir, "broken"));
  await writeFile(path.join(dir, "broken/run.json"), "{");
  await mkdir(path.join(dir, "empty"));
  const catalog = await openRuns([dir]);
  const overviews = await catalog.overviews();
  expect(overviews.map(({ facts, figures }) => [facts.key, figures.averageReward?.value])).toEqual([
    ["first", 0.5],
    ["more/second", 1],
  ]);
  expect(overviews[0]).toMatchObject({
    startedAtMs: 5_000,
    facts: { dir: path.join(dir, "first"), episodeCount: 2, state: "finished" },
    figures: { scopes: ["shop/test"], taskCount: 2, attemptCount: 1, scoredCount: 2 },
  });
  expect(catalog.unreadable.map(({ dir: broken }) => broken)).toEqual([path.join(dir, "broken")]);

  await write("third", []);
  await rm(path.join(dir, "more"), { recursive: true });
  await appendEpisode(path.join(dir, "first"), episode("shop/test/2#0", 1));
  await catalog.search();
  const later = await catalog.overviews();
  expect(later.map(({ facts, figures }) => [facts.key, figures.scoredCount])).toEqual([
    ["first", 3],
    ["third", 0],
  ]);
});

test("runs of one name get numbers, and a run is not searched for runs", async () => {
  await write("a/run", [1]);
  await write("b/run", [0]);
  await write("b/run/inner", [0]);
  const catalog = await openRuns([path.join(dir, "a/run"), path.join(dir, "b")]);
  expect(catalog.runs.map(({ key }) => key)).toEqual(["run", "run-2"]);
  await expect(catalog.find("inner")).rejects.toThrow("it is not being viewed");
});

test("a list of runs does not read training rows, and a run's page does", async () => {
  await write("run", [1]);
  await writeFile(path.join(dir, "run/samples.jsonl"), "nothing\n");
  const catalog = await openRuns([dir]);
  const [run] = catalog.runs;
  await catalog.overviews();
  expect(run!.facts.damagedCount).toBe(0);
  await Promise.all([run!.refresh("episodes"), catalog.find("run"), catalog.overviews()]);
  expect(run!.facts.damagedCount).toBe(1);
});

test("a run says that its folder is gone", async () => {
  await write("run", [1]);
  const { runs } = await openRuns([path.join(dir, "run")]);
  await rm(path.join(dir, "run"), { recursive: true });
  await runs[0]!.refresh();
  expect(runs[0]!.facts).toMatchObject({ state: "removed", episodeCount: 0 });
});

test("a run has its settings, its identity and its summary", async () => {
  await write("run", [1]);
  const { runs } = await openRuns([path.join(dir, "run")]);
  expect(await runs[0]!.about()).toEqual({
    configuration: { env: "shop", split: "test" },
    settings: { engine: "reference", model: expect.stringContaining("storefront-2m") },
    summary: { end: "finished" },
  });
});

test("successes follow the threshold, or else the environment's own verdict", async () => {
  const rows = [
    makeEpisode("shop/test/0#0", [{}], { reward: 0.8, success: false }),
    makeEpisode("shop/test/1#0", [{}], { reward: 0.2, success: true }),
    makeEpisode("shop/test/2#0", [{}], { reward: 1 }),
  ];
  await writeViewedRun(
    path.join(dir, "run"),
    rows.map((row) => ({ row, samples: [] })),
  );
  const judged = async (successThreshold?: number) => {
    const { runs } = await openRuns([path.join(dir, "run")], { successThreshold });
    const { facts, entries } = runs[0]!;
    const { passHatK } = figuresOf(entries);
    const successes = entries.map(({ success }) => success);
    return [facts.successThreshold, successes, passHatK["1"]?.value];
  };
  expect(await judged()).toEqual([undefined, [false, true, undefined], 2 / 3]);
  expect(await judged(0.8)).toEqual([0.8, [true, false, true], 2 / 3]);
  expect(await judged(0.9)).toEqual([0.9, [false, false, true], 1 / 3]);
});

test("a folder without runs is refused", async () => {
  await expect(openRuns([dir])).rejects.toThrow(UsageError);
  await expect(openRuns([])).rejects.toThrow("Cannot view runs: expected a run's folder");
});
