import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Environment } from "../environment/environment.ts";
import { Redactor } from "../internal/redactor.ts";
import type { Task } from "../task.ts";
import { parseEpisodeRow, parseJson } from "./episode-row.ts";
import { diskFiles } from "./files.ts";
import {
  fiftyLamps,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "./lamp-groups.fixture.ts";
import { lampSetup } from "./lamp-run.fixture.ts";
import { ownTask, taskKey } from "./noted-task.ts";
import { indexRecordings, readRecording } from "./read-recording.ts";
import { episodesFile, samplesFile } from "./reconcile.ts";
import { recordedAssignment, replayEpisode, type StoredEpisode } from "./replay-episode.ts";
import { indexRows } from "./row-index.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { taskList, type TaskSource } from "./task-source.ts";
import type { Sample } from "../trajectory/sample.ts";

/** Lamps of 40 watts; what a lamp draws is its reward. */
const environment: Environment = {
  ...fiftyLamps,
  task: (split, index) => ({ ...fiftyLamps.task(split, index), data: { watts: 40 } }),
  async open(task, options) {
    const world = await fiftyLamps.open(task, options);
    const { watts } = task.data as { readonly watts: number };
    return { ...world, score: async () => ({ reward: watts, details: {} }) };
  },
};

const brighter: Task = { ...environment.task("test", 3), data: { watts: 100 } };
const withMap: Task = { ...brighter, data: { watts: 100, rooms: new Map() } };

describe("what is written of a task beside its place", () => {
  test.each<[what: string, task: Task, expected: object | undefined]>([
    ["the one that is drawn there", environment.task("test", 3), undefined],
    ["the same in another order", { ...brighter, data: { watts: 40 } }, undefined],
    [
      "with members that have no value",
      { ...brighter, data: { watts: 40, more: undefined } },
      undefined,
    ],
    ["another", brighter, { hash: taskKey(brighter), task: brighter }],
    ["one that JSON cannot say", withMap, { hash: taskKey(withMap) }],
    [
      "one of no split",
      { ...brighter, split: "own" },
      expect.objectContaining({ hash: expect.any(String) as string }),
    ],
  ])("%s", (_, task, expected) => {
    expect(ownTask(task, { environment })).toEqual(expected);
  });

  test("is no secret", () => {
    const task = { ...brighter, instruction: "The key is sesame-open." };
    const redactor = new Redactor(["sesame-open"]);
    expect(ownTask(task, { environment, redactor })).toEqual({ hash: taskKey(task) });
    expect(ownTask(brighter, { environment, redactor })).toHaveProperty("task", brighter);
  });
});

test("a task's key tells what it is, whatever the order of its members", () => {
  const { data, ...rest } = brighter;
  expect(taskKey({ data, ...rest })).toBe(taskKey(brighter));
  expect(taskKey({ ...brighter, data: { watts: 99 } })).not.toBe(taskKey(brighter));
});

describe("a task that is another than the environment draws under its name", () => {
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), "noted-task-"));
  });

  afterEach(async () => {
    await rm(dir, { recursive: true, force: true });
  });

  const setupWith = (engine = switchingEngine()) => lampSetup({ environment, engine });

  /** A source that gives it at each start. */
  const sourceOf = (task: Task): TaskSource => ({
    ...{ length: 1, repeatable: true },
    at: () => ({ task, groupId: "own" }),
  });

  const play = async (task: Task, options: Partial<StartRunOptions> = {}) => {
    await using folder = await openLamps(dir);
    const about = { setup: setupWith(), source: sourceOf(task), grouping: { size: 1 } };
    return await takeAll(startLamps({ ...about, folder, ...options }));
  };

  const stored = async (): Promise<StoredEpisode> => {
    const files = diskFiles;
    const rows = await indexRows(files, path.join(dir, episodesFile));
    const samples = await indexRows(files, path.join(dir, samplesFile));
    const index = await indexRecordings(dir, { files, wants: () => true });
    const { ranges } = index.get("own#0")!;
    const recorded = await readRecording(dir, { files, ranges, runId: undefined });
    const [line] = await rows.read("own#0");
    return {
      recorded: recorded!,
      row: parseEpisodeRow(line!)!,
      samples: (await samples.read("own#0")).map((text) => parseJson(text) as Sample),
    };
  };

  test("is replayed as it was given, and scored anew as that", async () => {
    const [group] = await play(brighter);
    expect(group!.episodes[0]!.reward).toBe(100);
    const setup = setupWith();
    expect(await replayEpisode(await stored(), { setup })).toMatchObject({ type: "identical" });
    const dimmer: Environment = {
      ...environment,
      async open(task, options) {
        const { watts } = task.data as { readonly watts: number };
        return await environment.open({ ...task, data: { watts: watts / 2 } }, options);
      },
    };
    const anew = { setup: { ...setup, environment: dimmer }, scoreAnew: true };
    expect(await replayEpisode(await stored(), anew)).toMatchObject({
      type: "differs",
      episode: { reward: 50 },
    });
    expect(recordedAssignment(environment, (await stored()).recorded).task).toEqual(brighter);
  });

  test("is not replayed as another where the recording cannot hold it", async () => {
    await play(withMap);
    const reason =
      'it was played with a task of its own in the place of task 3 of "test", which the recording does not hold: ' +
      "JSON could not say it, or it held a secret";
    expect(await replayEpisode(await stored(), { setup: setupWith() })).toEqual({
      type: "diverged",
      reason,
    });
    const { recorded } = await stored();
    expect(() => recordedAssignment(environment, recorded)).toThrow(
      `Cannot play own#0 again: ${reason}`,
    );
  });

  test.each([
    ["the same", 100, ["own#0:1"]],
    ["another", 60, ["own#0:0", "own#0:1"]],
  ])("goes on after a stop where the source gives %s", async (_, watts, expected) => {
    const stop = new AbortController();
    const stopping = switchingEngine((_request, turn) => void (turn === 1 && stop.abort()));
    await play(brighter, { setup: setupWith(stopping), signal: stop.signal });
    const asked: string[] = [];
    const engine = switchingEngine(
      ({ sessionId }, turn) => void asked.push(`${sessionId}:${turn}`),
    );
    const [group] = await play({ ...brighter, data: { watts } }, { setup: setupWith(engine) });
    expect(asked).toEqual(expected);
    expect(group!.episodes[0]!.reward).toBe(watts);
  });
});

describe("an environment that writes into its tasks", () => {
  let dir = "";
  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), "turnwright-written-task-"));
  });
  afterEach(async () => {
    await rm(dir, { recursive: true });
  });

  test("costs no attempt that goes on its recording", async () => {
    const writing: Environment = {
      ...fiftyLamps,
      task: (split, index) => ({ ...fiftyLamps.task(split, index), data: { opened: 0 } }),
      async open(task, options) {
        (task.data as { opened: number }).opened += 1;
        return await fiftyLamps.open(task, options);
      },
    };
    const asked: string[] = [];
    const play = async (stopAt: string | undefined): Promise<void> => {
      await using folder = await openLamps(dir);
      const stop = new AbortController();
      const engine = switchingEngine(async ({ requestId, sessionId }, turn) => {
        asked.push(requestId);
        if (`${sessionId}:${turn}` !== stopAt) return;
        stop.abort();
        await new Promise(() => {});
      });
      const source = taskList(writing, { split: "test", taskIndexes: [0] });
      const setup = lampSetup({ environment: writing, engine });
      const parts = { folder, source, setup, signal: stop.signal };
      const run = startLamps({ ...parts, admission: { concurrency: 1 } });
      await takeAll(run).catch(() => undefined);
    };
    await play("lamp/test/0#1:1");
    await play(undefined);
    expect(asked.slice(2)).toEqual([
      "lamp/test/0#1:1:0;",
      "lamp/test/0#1:1:1;",
      "lamp/test/0#1:1.2:1;",
    ]);
  });
});
