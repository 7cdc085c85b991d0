import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyRun } from "../audit/verify-run.ts";
import { characterRenderer } from "../testing/character-renderer.ts";
import { fiftyLamps, lampList, startLamps, takeAll } from "./lamp-groups.fixture.ts";
import { RunFolder, type RunManifest } from "./run-folder.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { endlessTasks, taskList, type TaskSource } from "./task-source.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-own-manifest-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const own: RunManifest = { format: 1, turnwright: "mine", configuration: { k: 2 }, found: {} };

const { vocabularySize } = characterRenderer().codec;

async function play(manifest: RunManifest): Promise<RunManifest> {
  await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
  await takeAll(startLamps({ folder }));
  return folder.manifest;
}

/** Pass after pass over three lamps. */
function boundless(): TaskSource {
  return endlessTasks(fiftyLamps, { split: "test", taskIndexes: [0, 1, 2], seed: 0 });
}

/** The lamps that are planned, in groups of other names. */
function named(): TaskSource {
  return {
    length: 3,
    at: (groupIndex) => ({
      task: fiftyLamps.task("test", groupIndex),
      groupId: `step-${groupIndex}`,
    }),
  };
}

async function stored(): Promise<RunManifest> {
  return JSON.parse(await readFile(path.join(dir, "run.json"), "utf8")) as RunManifest;
}

test("a program's own manifest says what verify asks for once its run was started", async () => {
  const found = { plan: { isOpen: true }, vocabularySize };
  const manifest = await play(own);
  expect(manifest).toMatchObject({ ...own, found });
  expect(await stored()).toEqual(manifest);
  expect(await verifyRun(dir)).toMatchObject({ isFinished: true, episodes: 6, violations: [] });
  // The folder is the same run's at a later start, which says no more than the first one.
  expect(await play(own)).toEqual(manifest);
  expect(await stored()).toEqual(manifest);
});

test("what a program's own manifest says was found stays as it is", async () => {
  const found = {
    trainer: "mine",
    plan: { environment: "lamp", split: "test", taskIndexes: [0, 1, 2], sampleCount: 2, seed: 0 },
  };
  expect((await play({ ...own, found })).found).toEqual({ ...found, vocabularySize });
  expect(await verifyRun(dir)).toMatchObject({ planned: 6, violations: [] });
});

const lampsPlan = {
  environment: "lamp",
  split: "test",
  taskIndexes: [0, 1, 2],
  sampleCount: 2,
  seed: 0,
};

test.each<[string, Partial<StartRunOptions>]>([
  ["without end", { source: boundless(), grouping: { size: 2 } }],
  ["of other tasks", { source: taskList(fiftyLamps, { split: "test", taskIndexes: [0, 1, 3] }) }],
  ["of fewer tasks", { source: lampList(2) }],
  ["of groups of one's own", { source: named() }],
  ["of larger groups", { grouping: { size: 3 } }],
  ["with other seeds", { seed: 7 }],
])("a plan that is another run's is left open by one %s", async (_, options) => {
  const manifest = { ...own, found: { trainer: "mine", plan: lampsPlan } };
  {
    await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
    const run = startLamps({ folder, ...options });
    let count = 0;
    for await (const _group of run) if (++count === 5) void run.interrupt();
  }
  const found = { trainer: "mine", plan: { isOpen: true }, vocabularySize };
  expect((await stored()).found).toEqual(found);
  expect(await verifyRun(dir)).toMatchObject({ violations: [] });
});

test("a folder whose plan was another run's goes on, and is found sound", async () => {
  // As it was written before plans were held against what is played.
  await play(own);
  await writeFile(
    path.join(dir, "run.json"),
    JSON.stringify({
      ...(await stored()),
      found: { plan: { ...lampsPlan, taskIndexes: [2, 1, 0] } },
    }),
  );
  expect((await verifyRun(dir)).violations.map(({ rule }) => rule)).toContain("plan");
  expect((await play(own)).found).toMatchObject({ plan: { isOpen: true } });
  expect(await verifyRun(dir)).toMatchObject({ isFinished: true, episodes: 6, violations: [] });
});

test("a manifest may leave out what was found altogether", async () => {
  const { found: _none, ...bare } = own;
  await play(bare as RunManifest);
  expect((await stored()).found).toEqual({ plan: { isOpen: true }, vocabularySize });
  expect(await verifyRun(dir)).toMatchObject({ episodes: 6, violations: [] });
});
