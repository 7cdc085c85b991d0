import { appendFile, mkdtemp, readFile, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ColumnSource } from "../../columns/column-source.ts";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import type { Engine } from "../../engine/engine.ts";
import { inputsBefore, type Inputs } from "../../episode/inputs/input.ts";
import type { RunResult } from "../run-rollouts.ts";
import { fakeMachine } from "../machine.fixture.ts";
import { lampSetup } from "../lamp-run.fixture.ts";
import { testManifest } from "../folder/run-folder.fixture.ts";
import { packRun, unpackRun } from "../gzip/pack-run.ts";
import { planRun } from "../schedule/plan-run.ts";
import { createPushedTasks } from "../schedule/pushed-tasks.ts";
import { startRun } from "../start-run.ts";
import { RunFolder } from "../folder/run-folder.ts";
import { openColumnFolder } from "./column-folder.ts";
import {
  checkInvented,
  inventedLampEngine,
  inventedLamps,
  inventedSpecs,
  playInventedLamps,
  readRows,
} from "./invented-columns.fixture.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-columns-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const oneLamp = { split: "test", taskIndexes: [0] };

let pid = 1;
async function open(): Promise<RunFolder> {
  pid += 1;
  const lock = { machine: fakeMachine({ pid }) };
  return await RunFolder.open(dir, testManifest, { retryFailed: false, lock });
}

test("rows name their columns by hash, and the folder has their bytes once", async () => {
  {
    await using folder = await open();
    await playInventedLamps(folder);
  }
  const rows = await readRows(dir);
  expect(rows).toHaveLength(4);
  // Two turns of four attempts with three columns.
  expect(await checkInvented(dir, rows)).toBe(24);
  expect(rows[0]!.columns!.routedExperts![0]).not.toHaveProperty("bytes");
  const names = await readdir(path.join(dir, "columns"));
  expect(names.toSorted()).toEqual(["start-0-0000.bin", "start-0.jsonl"]);
  const parts = new Map(
    rows.flatMap(({ columns }) => Object.values(columns!).flat()).map((part) => [part.hash, part]),
  );
  const { size } = await stat(path.join(dir, "columns", "start-0-0000.bin"));
  const named = [...parts.values()].reduce((sum, part) => sum + part.size, 0);
  // Equal attempts have equal parts, which are written again.
  expect(size).toBeGreaterThanOrEqual(named);
});

test("a run that was stopped resumes with the columns that it has, and asks for no row twice", async () => {
  const abort = new AbortController();
  {
    await using folder = await open();
    const engine = inventedLampEngine({
      onRequest: (requestId) => {
        if (requestId.endsWith(":1;")) abort.abort(new Error("stopped"));
      },
    });
    const options = { engine, signal: abort.signal, concurrency: 1 };
    await playInventedLamps(folder, options).catch(() => {});
  }
  await appendFile(path.join(dir, "columns", "start-0-0000.bin"), "half a part");
  const known: (number | undefined)[] = [];
  {
    await using folder = await open();
    const engine = inventedLampEngine();
    const watched: Engine = {
      ...engine,
      generate: async (request, options) => {
        known.push(request.columns?.knownRows);
        return await engine.generate(request, options);
      },
    };
    await playInventedLamps(folder, { engine: watched });
  }
  const rows = await readRows(dir);
  expect(rows).toHaveLength(4);
  await checkInvented(dir, rows);
  // The first attempt's first turn was sampled before the stop.
  expect(known.filter((count) => count === 0)).toHaveLength(3);
  const names = await readdir(path.join(dir, "columns"));
  expect(names.toSorted()).toEqual([
    "start-0-0000.bin",
    "start-0.jsonl",
    "start-1-0000.bin",
    "start-1.jsonl",
  ]);
});

test("an attempt whose recorded columns were lost is played from its first turn", async () => {
  const abort = new AbortController();
  {
    await using folder = await open();
    const engine = inventedLampEngine({
      onRequest: (requestId) => {
        if (requestId.endsWith(":1;")) abort.abort(new Error("stopped"));
      },
    });
    const options = { engine, signal: abort.signal, concurrency: 1 };
    await playInventedLamps(folder, options).catch(() => {});
  }
  await rm(path.join(dir, "columns"), { recursive: true });
  {
    await using folder = await open();
    await playInventedLamps(folder);
  }
  const rows = await readRows(dir);
  expect(rows).toHaveLength(4);
  await checkInvented(dir, rows);
  const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
  expect(events).toContain("the run's folder has no file with its column routedExperts");
});

test("a branch shares the parts of its prefix", async () => {
  {
    await using folder = await open();
    await playInventedLamps(folder, { branchAt: [1] });
  }
  const rows = await readRows(dir);
  await checkInvented(dir, rows);
  const [first, branch] = rows;
  expect(branch!.columns!.routedExperts![0]).toEqual(first!.columns!.routedExperts![0]);
  // The branch trains its own turn only.
  expect(branch!.columns!.keptTokens).toHaveLength(1);
});

test("a fork into another folder brings the parts of the shared turns", async () => {
  const other = await mkdtemp(path.join(tmpdir(), "turnwright-columns-fork-"));
  try {
    let inputs: Inputs | undefined;
    {
      await using folder = await open();
      await playInventedLamps(folder);
    }
    {
      await using folder = await open();
      const recorded = await folder.recordings.read("lamp/test/0#0");
      inputs = inputsBefore(recorded!.inputs, 1);
    }
    const [task] = [planRun(inventedLamps, { ...oneLamp, sampleCount: 1, seed: 0 }).at(0).task];
    const place = { rolloutId: "lamp/test/0#0", turnIndex: 1 };
    const forkWith = async (
      columns: ColumnSource | undefined,
      specs: ColumnSpecs | undefined = inventedSpecs,
    ): Promise<RunResult> => {
      pid += 1;
      await using folder = await RunFolder.open(other, testManifest, {
        retryFailed: false,
        lock: { machine: fakeMachine({ pid }) },
      });
      const pushed = createPushedTasks();
      const fork = { place, inputs: inputs!, seed: 7, ...(columns && { columns }) };
      pushed.push({ task, groupId: "fork", fork });
      pushed.end();
      const run = startRun({
        source: pushed,
        setup: {
          ...lampSetup({ environment: inventedLamps, engine: inventedLampEngine() }),
          ...(specs && { columns: specs }),
        },
        grouping: { size: 2 },
        admission: { concurrency: 2 },
        folder,
      });
      for await (const _ of run);
      return await run.result;
    };
    await expect(forkWith(undefined)).rejects.toThrow(
      "Cannot part from lamp/test/0#0 with turn 1: its turns have side columns, and the fork does not say where they " +
        "are; give it `columns`",
    );
    await using source = openColumnFolder(dir);
    const { routedExperts, ...others } = inventedSpecs;
    const wider = { ...others, routedExperts: { ...routedExperts, layerCount: 4 } };
    for (const [specs, why] of [
      [others, "routedExperts, and this run does not request it"],
      [wider, "routedExperts with 6 bytes a token, and this run requests 8"],
      [{}, "routedExperts, and this run does not request it"],
    ] as const) {
      await expect(forkWith(source, specs)).rejects.toThrow(
        `Cannot part from lamp/test/0#0 with turn 1: its turns have the side column ${why}; request the columns that it ` +
          "was played with",
      );
    }
    const damaged: ColumnSource = {
      read: async (part) => (await source.read(part)).map((byte) => byte + 1),
    };
    await expect(forkWith(damaged)).rejects.toThrow("were changed");
    expect(await forkWith(source)).toMatchObject({ end: "finished" });
    const rows = await readRows(other);
    expect(rows).toHaveLength(2);
    await checkInvented(other, rows);
    const [original] = await readRows(dir);
    expect(rows[0]!.columns!.routedExperts![0]).toEqual(original!.columns!.routedExperts![0]);
  } finally {
    await rm(other, { recursive: true });
  }
});

test("a packed run has its columns", async () => {
  {
    await using folder = await open();
    await playInventedLamps(folder);
  }
  const rows = await readRows(dir);
  const files = await readdir(path.join(dir, "columns"));
  await packRun(dir);
  expect(await readdir(path.join(dir, "columns"))).toEqual(files);
  await checkInvented(dir, rows);
  await unpackRun(dir);
  expect(await readRows(dir)).toEqual(rows);
});
