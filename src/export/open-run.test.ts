import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyExport } from "../verify/exported/verify-export.ts";
import { verifyRun } from "../verify/verify-run.ts";
import { readRun } from "../api/read-run.ts";
import {
  fiftyLamps,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "../run/lamp-groups.fixture.ts";
import { lampSetup } from "../run/lamp-run.fixture.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import { createEndlessTasks } from "../run/schedule/task-source.ts";
import { exportRun, type ExportOptions } from "./export-run.ts";
import type { ExportTarget } from "./exporters.ts";
import { readRunGroups } from "./read-run-groups.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-open-run-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/**
 * Plays lamp 0 epoch after epoch, one attempt at a time, until the given number of episodes has
 * ended.
 */
async function play(
  episodeCount: number,
  { size = 2, started = size }: { readonly size?: number; readonly started?: number } = {},
): Promise<void> {
  await using folder = await openLamps(dir);
  let count = 0;
  const run = startLamps({
    folder,
    source: createEndlessTasks(fiftyLamps, { split: "test", taskIndexes: [0], seed: 0 }),
    grouping: { size, started },
    admission: { concurrency: 1 },
    onEpisode: () => {
      count += 1;
      if (count === episodeCount) void run.interrupt();
    },
  });
  for await (const _ of run);
}

async function exported(to: ExportTarget): Promise<readonly Record<string, unknown>[]> {
  const { content } = await exportRun(dir, to);
  const parts: Uint8Array[] = [];
  for await (const bytes of content) parts.push(bytes);
  const text = Buffer.concat(parts).toString("utf8");
  await writeFile(path.join(dir, `rows.${to}`), text);
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function setPlan(plan: object): Promise<void> {
  const file = path.join(dir, "run.json");
  const manifest = JSON.parse(await readFile(file, "utf8")) as RunManifest;
  await writeFile(file, JSON.stringify({ ...manifest, found: { ...manifest.found, plan } }));
}

/** The two complete groups of two after five attempts have ended, with their positions. */
const twoWholeGroups = [
  [0, 0, "lamp/test/0#0"],
  [0, 1, "lamp/test/0#1"],
  [1, 2, "lamp/test/0~2#0"],
  [1, 3, "lamp/test/0~2#1"],
];

const placesOf = (rows: readonly Readonly<Record<string, unknown>>[]): readonly unknown[] =>
  rows.map((row) => [row["group_index"], row["index"], row["session_id"]]);

const passes = ["lamp/test/0", "lamp/test/0~2", "lamp/test/0~3"];

test("groups of one task over several passes are exported each for itself", async () => {
  await play(5);
  expect(await verifyRun(dir)).toMatchObject({ violations: [], episodes: 5 });
  // The third pass has one attempt of two.
  const rows = await exported("slime");
  expect(placesOf(rows)).toEqual(twoWholeGroups);
  const file = path.join(dir, "rows.slime");
  expect(await verifyExport(file, "slime", { run: dir })).toMatchObject({ violations: [] });
  const verl = await exported("verl");
  expect(verl.map((row) => (row["extra_fields"] as { readonly uid: string }).uid)).toEqual([
    passes[0],
    passes[0],
    passes[1],
    passes[1],
    passes[2],
  ]);
  expect(await (await readRun(dir)).evaluation()).toMatchObject({ trialCount: 5 });
});

test("exports the attempts that completed a group, without surplus ones", async () => {
  await play(4, { size: 2, started: 3 });
  const run = await readRunGroups(dir);
  const ids: string[][] = [];
  for await (const members of run.groups()) ids.push(members.map(({ rolloutId }) => rolloutId));
  expect(ids).toEqual([
    ["lamp/test/0#0", "lamp/test/0#1"],
    ["lamp/test/0~2#0", "lamp/test/0~2#1"],
  ]);
});

test("groups without a number are identified by their ids", async () => {
  await play(4);
  const file = path.join(dir, "episodes.jsonl");
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replaceAll(/"groupIndex":\d+,/g, ""));
  const rows = await exported("slime");
  expect(rows.map((row) => [row["group_index"], row["index"]])).toEqual([
    [0, 0],
    [0, 1],
    [1, 2],
    [1, 3],
  ]);
});

test.each<[string, (line: number) => boolean]>([
  ["no attempt is", () => false],
  ["all attempts but one are", (line) => line !== 0],
  ["one attempt of each group is", (line) => line % 2 === 0],
  ["one group is", (line) => line > 1],
])("slime gets only complete groups, also if %s counted", async (_, isCounted) => {
  // The third pass has one attempt of two.
  await play(5);
  const file = path.join(dir, "episodes.jsonl");
  const lines = (await readFile(file, "utf8")).split("\n");
  const written = lines.map((line, index) =>
    isCounted(index) ? line : line.replace(/"groupIndex":\d+,/, ""),
  );
  await writeFile(file, written.join("\n"));
  const rows = await exported("slime");
  expect(placesOf(rows)).toEqual(twoWholeGroups);
  const about = { run: dir };
  expect(await verifyExport(path.join(dir, "rows.slime"), "slime", about)).toMatchObject({
    violations: [],
  });
});

test("groups without a number follow their order of appearance, next to numbered ones", async () => {
  await play(4);
  const file = path.join(dir, "episodes.jsonl");
  const [first, second, third, fourth] = (await readFile(file, "utf8")).split("\n");
  const uncounted = [first, second].map((line) => line!.replace('"groupIndex":0,', ""));
  const moved = [third, fourth].map((line) => line!.replace('"groupIndex":1,', '"groupIndex":0,'));
  await writeFile(file, `${[...uncounted, ...moved].join("\n")}\n`);
  expect((await exported("slime")).map((row) => [row["group_index"], row["session_id"]])).toEqual([
    [0, "lamp/test/0#0"],
    [0, "lamp/test/0#1"],
    [1, "lamp/test/0~2#0"],
    [1, "lamp/test/0~2#1"],
  ]);
});

test("of a run that does not say how many attempts a group has, all that there is is exported", async () => {
  await play(5);
  const file = path.join(dir, "events.jsonl");
  await writeFile(file, (await readFile(file, "utf8")).replace('"size":2,"begun":2,', ""));
  const rows = await exported("slime");
  expect(rows.map((row) => [row["group_index"], row["index"]])).toEqual([
    [0, 0],
    [0, 1],
    [1, 2],
    [1, 3],
    [2, 4],
  ]);
});

test("a group that is counted in two places is refused", async () => {
  await play(2);
  const file = path.join(dir, "episodes.jsonl");
  const [first, second] = (await readFile(file, "utf8")).split("\n");
  const lines = [first, second!.replace('"groupIndex":0,', '"groupIndex":1,')];
  await writeFile(file, `${lines.join("\n")}\n`);
  await expect(exported("slime")).rejects.toThrow(
    `Cannot export ${file}, line 2: group lamp/test/0 has another place at ${file}, line 1; turnwright verify says more`,
  );
});

test("an attempt that does not fit the plan is refused, and replaces none", async () => {
  await play(3);
  const planned = { environment: "lamp", split: "test", sampleCount: 2, seed: 0 };
  const file = path.join(dir, "episodes.jsonl");
  await setPlan({ ...planned, taskIndexes: [0] });
  await expect(exported("verl")).rejects.toThrow(
    `Cannot export ${file}, line 3: attempt 0 at task 0 is not what was planned; turnwright verify says more`,
  );
  await setPlan({ ...planned, taskIndexes: [1] });
  await expect(exported("verl")).rejects.toThrow(
    `Cannot export ${file}, line 1: attempt 0 at task 0 is not what was planned; turnwright verify says more`,
  );
  const text = await readFile(file, "utf8");
  await setPlan({ ...planned, taskIndexes: [0] });
  await writeFile(file, text.replaceAll(/"groupIndex":\d+,/g, ""));
  await expect(exported("verl")).rejects.toThrow(
    `Cannot export ${file}, line 3: lamp/test/0~2#0 is in the place of lamp/test/0#0; turnwright verify says more`,
  );
  await setPlan({ isOpen: true });
  await writeFile(file, text.replaceAll('"sampleIndex":1', '"sampleIndex":0'));
  await expect(exported("verl")).rejects.toThrow(
    `Cannot export ${file}, line 2: lamp/test/0#1 is in the place of lamp/test/0#0; turnwright verify says more`,
  );
  await writeFile(file, text.replaceAll('"groupIndex":1', '"groupIndex":0'));
  await expect(exported("verl")).rejects.toThrow(
    `Cannot export ${file}, line 3: lamp/test/0~2 is in the place of lamp/test/0; turnwright verify says more`,
  );
});

/** The temperatures that prime-rl is given for a run's tokens. */
async function temperatures(options: ExportOptions = {}): Promise<readonly number[]> {
  const { content } = await exportRun(dir, "prime-rl", options);
  const parts: Uint8Array[] = [];
  for await (const bytes of content) parts.push(bytes);
  const lines = Buffer.concat(parts).toString("utf8").trim().split("\n");
  const rows = lines.map(
    (line) => JSON.parse(line) as { readonly sample: { readonly temperatures: readonly number[] } },
  );
  return [...new Set(rows.flatMap(({ sample }) => sample.temperatures))];
}

async function playAt(temperature?: number): Promise<void> {
  await using folder = await openLamps(dir);
  const sampling = temperature === undefined ? {} : { temperature };
  const setup = {
    ...lampSetup({ environment: fiftyLamps, engine: switchingEngine() }),
    sampling,
  };
  await takeAll(startLamps({ folder, setup }));
}

test.each([
  [0.6, 0.6],
  [undefined, 1],
  // It divides by it.
  [0, 1],
])("prime-rl is given the temperature that a program sampled at: %s", async (asked, recorded) => {
  await playAt(asked);
  expect(await temperatures()).toEqual([recorded]);
  // The caller's value overrides.
  expect(await temperatures({ temperature: 0.5 })).toEqual([0.5]);
  // A program may pass a variable that is undefined.
  const unsaid = { temperature: undefined as unknown as number };
  expect(await temperatures(unsaid)).toEqual([recorded]);
  await exported("prime-rl");
  const file = path.join(dir, "rows.prime-rl");
  const { violations } = await verifyExport(file, "prime-rl", { run: dir, ...unsaid });
  expect(violations).toEqual([]);
});

test("prime-rl is given no rows of a run that does not say at which temperature it was sampled", async () => {
  await playAt(0.6);
  const file = path.join(dir, "run.json");
  const { found, ...manifest } = JSON.parse(await readFile(file, "utf8")) as RunManifest;
  const { sampling: _sampling, ...earlier } = found;
  await writeFile(file, JSON.stringify({ ...manifest, found: earlier }));
  const refusal =
    "Cannot export lamp/test/0#0: its temperature is not recorded, and prime-rl reads a temperature for " +
    "each token; give it with ";
  await expect(temperatures()).rejects.toThrow(`${refusal}\`temperature\``);
  await expect(temperatures({ temperatureRemedy: "--temperature T" })).rejects.toThrow(
    `${refusal}--temperature T`,
  );
  expect(await temperatures({ temperature: 0.6 })).toEqual([0.6]);
});
