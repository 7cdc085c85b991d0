import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyRun } from "../audit/verify-run.ts";
import { characterRenderer } from "../testing/character-renderer.ts";
import { startLamps, takeAll } from "./lamp-groups.fixture.ts";
import { RunFolder, type RunManifest } from "./run-folder.ts";

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

test("a manifest may leave out what was found altogether", async () => {
  const { found: _none, ...bare } = own;
  await play(bare as RunManifest);
  expect((await stored()).found).toEqual({ plan: { isOpen: true }, vocabularySize });
  expect(await verifyRun(dir)).toMatchObject({ episodes: 6, violations: [] });
});
