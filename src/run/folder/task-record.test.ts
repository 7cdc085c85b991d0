import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Engine } from "../../engine/engine.ts";
import type { Environment } from "../../environment/environment.ts";
import { Redactor } from "../../secrets/redactor.ts";
import type { Task } from "../../task.ts";
import { groupStartedEvent } from "./started-groups.ts";
import { parseEpisodeRow, parseJson } from "./episode-row.ts";
import { diskFiles } from "../disk/files.ts";
import {
  fiftyLamps,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "../lamp-groups.fixture.ts";
import { lampSetup } from "../lamp-run.fixture.ts";
import { toTaskRecord, ownTask, fromTaskRecord, taskKey } from "./task-record.ts";
import { indexRecordings, readRecording } from "../recording/read-recording.ts";
import { episodesFile, samplesFile } from "./scan-claims.ts";
import {
  recordedAssignment,
  replayEpisode,
  type StoredEpisode,
} from "../recording/replay-episode.ts";
import { indexRows } from "./row-index.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import { createPushedTasks } from "../schedule/pushed-tasks.ts";
import { createTaskList, type SourcedTask, type TaskSource } from "../schedule/task-source.ts";
import type { Sample } from "../../trajectory/sample.ts";

/** Lamps of 40 watts; a lamp's wattage is its reward. */
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

describe("the record of a task next to its index", () => {
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

  test("does not count as a secret", () => {
    const task = { ...brighter, instruction: "The key is sesame-open." };
    const redactor = new Redactor(["sesame-open"]);
    expect(ownTask(task, { environment, redactor })).toEqual({ hash: taskKey(task) });
    expect(ownTask(brighter, { environment, redactor })).toHaveProperty("task", brighter);
  });
});

describe("a recorded task that holds a known key", () => {
  const secret = "sk-very-secret-key";
  const redactor = new Redactor([secret]);
  const keyed: Environment = {
    ...environment,
    task: (split, index) => ({
      ...environment.task(split, index),
      instruction: `Lamp ${index} on, by ${secret}.`,
    }),
  };
  const own = keyed.task("test", 3);
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), "noted-secret-"));
  });

  afterEach(async () => {
    await rm(dir, { recursive: true, force: true });
  });

  const written = async (): Promise<string> => {
    const names = (await readdir(dir)).filter((name) => name !== "run.lock");
    return (
      await Promise.all(names.map(async (name) => await readFile(path.join(dir, name), "utf8")))
    ).join("");
  };

  const play = async (
    sourced: readonly SourcedTask[],
    { engine = switchingEngine(), ...options }: Partial<StartRunOptions> & { engine?: Engine } = {},
  ) => {
    await using folder = await openLamps(dir);
    const source = createPushedTasks();
    source.push(...sourced);
    source.end();
    const setup = lampSetup({ environment: keyed, engine });
    const about = { setup, source, redactor, grouping: { size: 1 }, admission: { concurrency: 1 } };
    return await takeAll(startLamps({ ...about, folder, ...options }));
  };

  test("is drawn again if the environment has it", () => {
    const noted = toTaskRecord(own, { environment: keyed, redactor });
    expect(noted).toEqual({
      task: { ...own, instruction: "", data: null },
      isDrawnAgain: true,
      hash: taskKey(own),
    });
    expect(fromTaskRecord(noted, keyed)).toEqual(own);
    expect(() => fromTaskRecord(noted, environment)).toThrow(
      'Cannot resume lamp/test/3: task 3 of "test" of lamp is another now; restore what was there or ' +
        "choose another folder",
    );
    // A task without a secret is recorded unchanged, even if its id contains one.
    const named = { ...brighter, id: secret };
    expect(toTaskRecord(named, { environment, redactor })).toEqual({ task: named });
  });

  test.each([
    ["instruction", own],
    ["data", { ...brighter, data: { meters: [{ [secret]: 1 }] } }],
  ])("is refused if the environment has another one: its %s", (member, task) => {
    expect(() => toTaskRecord(task, { environment, redactor })).toThrow(
      `Cannot start lamp/test/3: its ${member} holds a known key or password, such as the engine's ` +
        "(--api-key-env), which is never written, and lamp does not draw the same task, so that a later start " +
        "could not resume it; take that out of the task, and have the environment read it where it is " +
        "needed, or play without a folder",
    );
  });

  test("is resumed after a stop, and its key is in no file", async () => {
    const stop = new AbortController();
    const engine = switchingEngine((_request, turn) => void (turn === 1 && stop.abort()));
    await play([{ task: own, groupId: "mine" }], { engine, signal: stop.signal });
    const asked: number[] = [];
    const again = switchingEngine((_request, turn) => void asked.push(turn));
    const [group] = await play([], { engine: again });
    expect(group).toMatchObject({ groupId: "mine", task: own, episodes: [{ reward: 40 }] });
    expect(asked).toEqual([1]);
    expect(await written()).not.toContain(secret);
    expect(await written()).not.toContain("recording-dropped");
  });

  test("ends the run after the started groups if it cannot be recorded", async () => {
    const other = { ...own, instruction: `Lamp off, by ${secret}.` };
    const playing = play([{ task: brighter }, { task: other, groupId: "mine" }]);
    await expect(playing).rejects.toThrow(
      "Cannot start lamp/test/3: its instruction holds a known key or password",
    );
    expect(await written()).toContain('"type":"episode-finished"');
    expect(await written()).not.toContain(secret);
  });

  test("is not in the inputs of a fork, either", () => {
    const inputs = { inputs: [{ type: "outside", name: `GET ${secret}` } as never], times: [7] };
    const place = { rolloutId: "lamp/test/3#0", turnIndex: 1 };
    const group = { groupIndex: 0, groupId: "mine", task: brighter };
    expect(groupStartedEvent({ ...group, fork: { place, inputs, seed: 3 } }, redactor)).toEqual({
      type: "group-begun",
      ...group,
      fork: {
        place,
        seed: 3,
        inputs: { inputs: [{ type: "outside", name: "GET [redacted]" }], times: [7] },
      },
    });
  });
});

test("a task's key depends on its content, not on the order of its members", () => {
  const { data, ...rest } = brighter;
  expect(taskKey({ data, ...rest })).toBe(taskKey(brighter));
  expect(taskKey({ ...brighter, data: { watts: 99 } })).not.toBe(taskKey(brighter));
});

describe("a task that differs from the one that the environment draws under its id", () => {
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
    length: 1,
    repeatable: true,
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
    const recorded = await readRecording(dir, {
      files,
      rolloutId: "own#0",
      ranges,
      runId: undefined,
    });
    const [line] = await rows.read("own#0");
    return {
      recorded: recorded!,
      row: parseEpisodeRow(line!)!,
      samples: (await samples.read("own#0")).map((text) => parseJson(text) as Sample),
    };
  };

  test("is replayed as it was given, and scored as that task", async () => {
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
    const options = { setup: { ...setup, environment: dimmer }, scoreAnew: true };
    expect(await replayEpisode(await stored(), options)).toMatchObject({
      type: "differs",
      episode: { reward: 50 },
    });
    expect(recordedAssignment(environment, (await stored()).recorded).task).toEqual(brighter);
  });

  test("is not replayed as another task if the recording cannot hold it", async () => {
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
  ])("is resumed after a stop if the source gives %s", async (_, watts, expected) => {
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

  test("keeps the recording of an attempt that is resumed", async () => {
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
      const source = createTaskList(writing, { split: "test", taskIndexes: [0] });
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
