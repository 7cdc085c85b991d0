import { mkdir, mkdtemp, readdir, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStoredRun } from "../report/read-run.ts";
import { readRun } from "../api/read-run.ts";
import { openRecordedRun } from "../composition/open-replay.ts";
import { openRuns } from "../viewer/source/run-catalog.ts";
import { openLamps, startLamps, switchingEngine, takeAll } from "./lamp-groups.fixture.ts";
import { rolloutIdsIn } from "./folder/run-folder.fixture.ts";

let scratch = "";
let elsewhere = "";
const before = process.cwd();
beforeEach(async () => {
  scratch = await realpath(await mkdtemp(path.join(tmpdir(), "turnwright-cwd-")));
  elsewhere = path.join(scratch, "elsewhere");
  await mkdir(elsewhere);
  process.chdir(scratch);
});
afterEach(async () => {
  process.chdir(before);
  await rm(scratch, { recursive: true });
});

async function idsOf(rows: AsyncIterable<{ readonly rolloutId: string }>): Promise<string[]> {
  const ids: string[] = [];
  for await (const { rolloutId } of rows) ids.push(rolloutId);
  return ids;
}

test("a run with tools that change the working directory is written to its first folder", async () => {
  const engine = switchingEngine(() => process.chdir(elsewhere));
  {
    await using folder = await openLamps(path.join("runs", "first"), { format: "slime" });
    expect([folder.name, folder.dir]).toEqual(["runs/first", path.join(scratch, "runs/first")]);
    const run = startLamps({ folder, engine });
    expect((await takeAll(run)).map(({ groupId }) => groupId)).toEqual([
      "lamp/test/0",
      "lamp/test/1",
      "lamp/test/2",
    ]);
    expect(await run.result).toMatchObject({ end: "finished", slime: { groups: 3 } });
  }
  expect(process.cwd()).toBe(elsewhere);
  expect(await readdir(elsewhere)).toEqual([]);
  expect((await readdir(path.join(scratch, "runs/first"))).toSorted()).toEqual([
    "episodes.jsonl",
    "events.jsonl",
    "recording.jsonl",
    "run.json",
    "samples.jsonl",
    "samples.slime.jsonl",
    "summary.json",
  ]);
});

test("a file that was opened for reading is read from its first folder", async () => {
  const dir = path.join("runs", "first");
  {
    await using folder = await openLamps(dir);
    await startLamps({ folder }).result;
  }
  const [stored, run, recorded, { runs }] = [
    await openStoredRun(dir),
    await readRun(dir),
    await openRecordedRun(dir),
    await openRuns([dir]),
  ];
  const ids = await rolloutIdsIn(dir, "samples.jsonl");
  expect(ids).toHaveLength(6);
  process.chdir(elsewhere);
  expect((await idsOf(stored.rows())).toSorted()).toEqual(ids);
  expect(await idsOf(run.samples())).toEqual(ids);
  expect(await idsOf(run.samplesOf(ids[2]!))).toEqual([ids[2]]);
  expect((await recorded.read(ids[1]!))?.row?.rolloutId).toBe(ids[1]);
  await runs[0]!.refresh();
  expect(runs[0]!.facts).toMatchObject({ dir, state: "finished", episodeCount: 6 });
  expect(await readFile(path.join(scratch, dir, "summary.json"), "utf8")).toContain("finished");
});
