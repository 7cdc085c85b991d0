import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Environment } from "../../environment/environment.ts";
import { createClock } from "../../async/clock.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { Task } from "../../task.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { askSource } from "./ask-source.ts";
import type { EpisodeGroup } from "./group.ts";
import {
  fiftyLamps,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "../lamp-groups.fixture.ts";
import { lampSetup } from "../lamp-run.fixture.ts";
import {
  boundedSource,
  createCurriculum,
  createEndlessTasks,
  createTaskList,
  type TaskSource,
} from "./task-source.ts";
import { createPushedTasks } from "./pushed-tasks.ts";
import { createTaskStream } from "./streamed-tasks.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "task-source-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

const lampTask = (index: number): Task => fiftyLamps.task("test", index);

const idsOf = (groups: readonly EpisodeGroup[]): readonly string[] =>
  groups.map(({ groupId }) => groupId);

describe("a task that no later start could read is refused", () => {
  const task = lampTask(0);
  const whole = "expected a whole number of at least 0, its place within its split";
  const text = "expected a text that is not empty";
  const cases: readonly [what: string, sourced: unknown, why: string][] = [
    [
      "an index below 0",
      { task: { ...task, index: -1 } },
      `the index of "${task.id}" is -1, ${whole}`,
    ],
    [
      "half an index",
      { task: { ...task, index: 0.5 } },
      `the index of "${task.id}" is 0.5, ${whole}`,
    ],
    [
      "no index",
      { task: { ...task, index: undefined } },
      `the index of "${task.id}" is nothing, ${whole}`,
    ],
    [
      "no split",
      { task: { ...task, split: undefined } },
      `the split of "${task.id}" is nothing, ${text}`,
    ],
    ["no name", { task: { ...task, id: "" } }, `the id of "" is "", ${text}`],
    ["a number as group", { task, groupId: 7 }, `the groupId of "${task.id}" is 7, ${text}`],
    ["no task", { groupId: "one" }, "it gave none, expected { task }, with an id"],
  ];

  test.each(cases)("when it is pushed: %s", (_, sourced, why) => {
    const source = createPushedTasks();
    expect(() => source.push({ task: lampTask(1) }, sourced as never)).toThrow(
      `Cannot push task 1: ${why}`,
    );
    expect(source.waitingCount).toBe(0);
  });

  test.each(cases)("when it is given: %s", async (_, sourced, why) => {
    const source = createCurriculum(() => sourced as never);
    await expect(takeAll(startLamps({ source }))).rejects.toThrow(
      `Cannot take task 0 from the source of tasks: ${why}`,
    );
  });
});

describe("groups that are delivered again", () => {
  const sourceWith = (odd: () => unknown): TaskSource => ({
    length: 3,
    repeatable: true,
    at: async (index) => (index === 1 ? ((await odd()) as never) : { task: lampTask(index) }),
  });
  /** Plays three groups that are not taken. */
  const playThree = async (): Promise<void> => {
    await using folder = await openLamps(dir);
    await startLamps({ folder }).result;
  };

  test.each<[how: string, odd: () => unknown, why: string]>([
    [
      "fails",
      () => {
        throw new TypeError("cannot read properties of undefined");
      },
      "Cannot take task 1 from the source of tasks: cannot read properties of undefined",
    ],
    [
      "gives nothing",
      () => undefined,
      "Cannot deliver group 1 again: the repeatable source of tasks gives no group at that index now; " +
        "start with the same tasks in the same order, or in another folder",
    ],
    [
      "gives what is no task",
      () => ({ task: {} }),
      "Cannot take task 1 from the source of tasks: it gave none, expected { task }, with an id",
    ],
  ])("are refused if their source %s", async (_, odd, why) => {
    await playThree();
    await using folder = await openLamps(dir);
    await expect(
      takeAll(startLamps({ folder, source: sourceWith(odd), redeliver: true })),
    ).rejects.toThrow(why);
  });

  test.each(["interrupt", "stop"] as const)(
    "do not wait for a source that does not answer after %s, and come with the next start",
    async (how) => {
      await playThree();
      {
        await using folder = await openLamps(dir);
        const asked = withResolvers();
        const source = sourceWith(async () => {
          asked.resolve();
          return await new Promise<never>(() => {});
        });
        const clock = createManualClock();
        const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
        const stop = new AbortController();
        const run = startLamps({
          folder,
          source,
          redeliver: true,
          signal: stop.signal,
          setup: { ...setup, clock: createClock(clock) },
        });
        await asked.promise;
        if (how === "stop") stop.abort();
        else void run.interrupt();
        await clock.untilSleeping(5000);
        await clock.advance(5000);
        // All groups are on the disk.
        expect(await run.result).toMatchObject({ end: "finished" });
      }
      await using folder = await openLamps(dir);
      const groups = await takeAll(startLamps({ folder, redeliver: true }));
      expect(groups.map(({ groupIndex }) => groupIndex)).toEqual([0, 1, 2]);
    },
  );
});

describe("groups that wait to be delivered, of a repeatable source", () => {
  /** Plays three groups that are not taken. */
  const playThree = async (): Promise<void> => {
    await using folder = await openLamps(dir);
    await startLamps({ folder, redeliver: true }).result;
  };

  test("are delivered by a start with another source, with the environment's tasks", async () => {
    await playThree();
    await using folder = await openLamps(dir);
    const source = createTaskStream([lampTask(3)]);
    const groups = await takeAll(startLamps({ folder, source, redeliver: true }));
    expect(groups.map(({ groupIndex, task }) => [groupIndex, task])).toEqual(
      [0, 1, 2, 3].map((index) => [index, lampTask(index)]),
    );
    expect(groups.map(({ episodes }) => episodes.length)).toEqual([2, 2, 2, 2]);
  });

  test.each<[what: string, draw: (task: Task) => Task, why: string]>([
    [
      "is another one",
      (task) => ({ ...task, id: "other" }),
      'task 1 of "test" of lamp is other, expected lamp/test/1',
    ],
    [
      "cannot be drawn",
      () => {
        throw new TypeError("no such row");
      },
      'Cannot play lamp: its task 1 of "test" cannot be drawn: no such row',
    ],
  ])("are refused, and nothing is played, if the task of one %s", async (_, draw, why) => {
    await playThree();
    const environment: Environment = {
      ...fiftyLamps,
      task: (split, index) =>
        index === 1 ? draw(fiftyLamps.task(split, index)) : fiftyLamps.task(split, index),
    };
    await using folder = await openLamps(dir);
    const asked: string[] = [];
    const engine = switchingEngine(({ requestId }) => void asked.push(requestId));
    const setup = lampSetup({ environment, engine });
    const source = createTaskStream([lampTask(3)]);
    await expect(takeAll(startLamps({ folder, source, setup, redeliver: true }))).rejects.toThrow(
      "Cannot deliver group lamp/test/1 again: its task was not recorded, because the source of that start was " +
        `repeatable, and it cannot be drawn: ${why}; start with that source, or in another folder`,
    );
    expect(asked).toEqual([]);
  });
});

test("waiting groups are delivered with their recorded task", async () => {
  const variant = (index: number): Task => ({ ...lampTask(index), instruction: "Lamp off." });
  const source: TaskSource = {
    length: 2,
    repeatable: true,
    at: (place) => ({ task: variant(place) }),
  };
  {
    await using folder = await openLamps(dir);
    await startLamps({ folder, source, redeliver: true }).result;
  }
  await using folder = await openLamps(dir);
  const groups = await takeAll(
    startLamps({ folder, source: createTaskStream([]), redeliver: true }),
  );
  expect(groups.map(({ task }) => task)).toEqual([variant(0), variant(1)]);
});

describe("groups that an earlier start ended are of the source's own tasks", () => {
  const listOf = (...taskIndexes: number[]): TaskSource =>
    createTaskList(fiftyLamps, { split: "test", taskIndexes });
  const withoutIndexes = (...taskIndexes: number[]): TaskSource => ({
    length: taskIndexes.length,
    repeatable: true,
    at: (place) => ({ task: lampTask(taskIndexes[place]!) }),
  });
  const scope = { split: "test", taskIndexes: [0, 1, 2] };
  const passes = (seed: number): TaskSource =>
    boundedSource(createEndlessTasks(fiftyLamps, { ...scope, seed }), 3);
  const playIn = async (source: TaskSource): Promise<readonly string[]> => {
    await using folder = await openLamps(dir);
    return idsOf(await takeAll(startLamps({ folder, source })));
  };
  const remedy = "start with the same tasks in the same order, or in another folder";
  const lampsNamed = (name: string): Environment => ({
    ...fiftyLamps,
    name,
    splits: { test: 50, train: 50 },
    task: (split, index) => {
      const id = `${name}/${split}/${index}`;
      return { ...lampTask(index), id, environment: name, split };
    },
  });

  test.each<[what: string, source: TaskSource, other: string]>([
    ["a list of others", listOf(7, 8, 9, 10), "lamp/test/7"],
    ["a list of as many others", listOf(7, 8, 9), "lamp/test/7"],
    ["a source without indexes", withoutIndexes(7, 8, 9, 10), "lamp/test/7"],
  ])("or the start is refused: %s", async (_, source, other) => {
    await playIn(listOf(0, 1, 2));
    await expect(playIn(source)).rejects.toThrow(
      "Cannot resume group 0: lamp/test/0#0 is finished in its place, and the source of tasks gives " +
        `${other} there now; ${remedy}`,
    );
    // The refused start played nothing, and the folder continues with its own tasks.
    expect(await playIn(listOf(0, 1, 2, 3))).toEqual(["lamp/test/3"]);
  });

  test("or the start is refused: the same tasks in another order", async () => {
    await playIn(listOf(0, 1, 2));
    await expect(playIn(listOf(0, 2, 1))).rejects.toThrow(
      "Cannot resume group 1: lamp/test/1#0 is finished in its place, and the source of tasks gives " +
        `lamp/test/2 there now; ${remedy}`,
    );
  });

  test("or the start is refused: passes in another order", async () => {
    expect(await playIn(passes(1))).toEqual(["lamp/test/0", "lamp/test/2", "lamp/test/1"]);
    await expect(playIn(passes(2))).rejects.toThrow(
      "Cannot resume group 0: lamp/test/0#0 is finished in its place, and the source of tasks gives " +
        `lamp/test/1 there now; ${remedy}`,
    );
    expect(await playIn(passes(1))).toEqual([]);
  });

  test.each([
    ["fewer of them", listOf(0, 1), []],
    ["further ones", listOf(0, 1, 2, 3), ["lamp/test/3"]],
    ["later ones of a source without indexes", withoutIndexes(0, 1, 2, 3), ["lamp/test/3"]],
  ])("and it continues with %s", async (_, source, played) => {
    await playIn(listOf(0, 1, 2));
    expect(await playIn(source)).toEqual(played);
  });

  test.each([
    ["a list", listOf(0, 1, 2), listOf(0, 1, 2, 3)],
    ["passes", passes(1), boundedSource(createEndlessTasks(fiftyLamps, { ...scope, seed: 1 }), 4)],
  ])(
    "and a source with task indexes is asked only for the first and the last: %s",
    async (_, first, source) => {
      await playIn(first);
      const asked: number[] = [];
      await playIn({
        ...source,
        at: (index, options) => {
          asked.push(index);
          return source.at(index, options);
        },
      });
      expect(asked).toEqual([0, 2, 3]);
    },
  );

  test.each([
    ["of another split", lampsNamed("lamp"), "train", "lamp/train/0"],
    ["of another environment", lampsNamed("desk"), "test", "desk/test/0"],
  ])("or the start is refused: a list %s", async (_, environment, split, other) => {
    await playIn(listOf(0, 1, 2));
    const source = createTaskList(environment, { split, taskIndexes: [0, 1, 2] });
    await expect(playIn(source)).rejects.toThrow(
      "Cannot resume group 0: lamp/test/0#0 is finished in its place, and the source of tasks gives " +
        `${other} there now; ${remedy}`,
    );
  });

  test("or the start is refused before the results of the folder are removed", async () => {
    await playIn(listOf(0, 1, 2));
    const summary = path.join(dir, "summary.json");
    const before = await readFile(summary, "utf8");
    await expect(playIn(listOf(0, 1, 5, 6))).rejects.toThrow("Cannot resume group 2");
    expect(await readFile(summary, "utf8")).toBe(before);
  });

  test("and a source that dropped their tasks continues with the others", async () => {
    const source = withoutIndexes(0, 1, 2, 3);
    await playIn({ ...source, length: 3 });
    const at: TaskSource["at"] = (place, options) =>
      place < 3 ? undefined : source.at(place, options);
    expect(await playIn({ ...source, at })).toEqual(["lamp/test/3"]);
  });

  test("or the start is refused, with the index, if the source fails", async () => {
    await playIn(listOf(0, 1, 2));
    const taskIndexAt = (): never => {
      throw new TypeError("no such table");
    };
    await expect(playIn({ ...listOf(0, 1, 2, 3), taskIndexAt })).rejects.toThrow(
      "Cannot take task 1 from the source of tasks: no such table",
    );
  });
});

describe("createTaskStream()", () => {
  /** A stream of tasks; the test decides when each is given. */
  const streamOf = (count: number) => {
    const gates = Array.from({ length: count }, () => withResolvers());
    async function* stream(): AsyncGenerator<Task> {
      for (const [index, gate] of gates.entries()) {
        await gate.promise;
        yield lampTask(index);
      }
    }
    return { source: createTaskStream(stream()), give: (index: number) => gates[index]!.resolve() };
  };
  /** Asks as a start does that is stopped, and does not wait for the answer any longer. */
  const askInVain = async (source: TaskSource): Promise<void> => {
    const clock = createManualClock();
    const stop = new AbortController();
    const asked = askSource(source, 0, { signal: stop.signal, clock: createClock(clock) });
    stop.abort(new Error("stopped"));
    await clock.untilSleeping(5_000);
    const [end] = await Promise.allSettled([asked, clock.advance(5_000)]);
    expect(end).toEqual({ status: "rejected", reason: new Error("stopped") });
  };
  const { signal } = new AbortController();
  const idAt = async (source: TaskSource): Promise<string | undefined> =>
    (await askSource(source, 0, { signal }))?.task.id;

  test("gives the next start a task that arrived too late for the start that requested it", async () => {
    const { source, give } = streamOf(2);
    await askInVain(source);
    give(0);
    give(1);
    await setImmediate();
    expect(await idAt(source)).toBe("lamp/test/0");
    expect(await idAt(source)).toBe("lamp/test/1");
    expect(await idAt(source)).toBe(undefined);
  });

  test("also if several starts did not wait for it, and it has not arrived yet", async () => {
    const { source, give } = streamOf(1);
    await askInVain(source);
    await askInVain(source);
    const asked = idAt(source);
    give(0);
    expect(await asked).toBe("lamp/test/0");
    expect(await idAt(source)).toBe(undefined);
  });

  test("gives a start that still waits the first task, if another start stopped waiting", async () => {
    const { source, give } = streamOf(1);
    const clock = createManualClock();
    const stop = new AbortController();
    const about = { signal: stop.signal, clock: createClock(clock) };
    const first = askSource(source, 0, about);
    const second = idAt(source);
    stop.abort(new Error("stopped"));
    await clock.untilSleeping(5_000);
    const [end] = await Promise.allSettled([first, clock.advance(5_000)]);
    expect(end).toEqual({ status: "rejected", reason: new Error("stopped") });
    give(0);
    expect(await second).toBe("lamp/test/0");
    expect(await idAt(source)).toBe(undefined);
  });

  test("may be wrapped by a source that passes no options on", async () => {
    const { source, give } = streamOf(1);
    give(0);
    const bare = source as { at(groupIndex: number): ReturnType<TaskSource["at"]> };
    expect((await bare.at(0))?.task.id).toBe("lamp/test/0");
  });

  test("throws the error of a stream to the start that asked", async () => {
    const failing: AsyncIterable<Task> = {
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.reject(new Error("the queue is down")),
      }),
    };
    await expect(idAt(createTaskStream(failing))).rejects.toThrow(
      "Cannot take task 0 from the source of tasks: the queue is down",
    );
  });

  test("gives several starts that wait at once each a task", async () => {
    const { source, give } = streamOf(2);
    const asked = [idAt(source), idAt(source), idAt(source)];
    give(1);
    give(0);
    expect(await Promise.all(asked)).toEqual(["lamp/test/0", "lamp/test/1", undefined]);
  });

  test("loses no task of a stream that is slower than a stop waits", async () => {
    const { source, give } = streamOf(3);
    const grouping = { size: 1 };
    const played: string[] = [];
    {
      await using folder = await openLamps(dir);
      const clock = createManualClock();
      const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
      const timed = { ...setup, clock: createClock(clock) };
      const run = startLamps({ source, folder, setup: timed, grouping });
      give(0);
      for await (const { groupId } of run) {
        played.push(groupId);
        void run.interrupt();
        await clock.untilSleeping(5_000);
        await clock.advance(5_000);
      }
      expect((await run.result).end).toBe("interrupted");
    }
    for (const index of [1, 2]) give(index);
    await using folder = await openLamps(dir);
    const groups = await takeAll(startLamps({ source, folder, grouping }));
    expect([...played, ...idsOf(groups)]).toEqual(["lamp/test/0", "lamp/test/1", "lamp/test/2"]);
  });
});

describe("createPushedTasks()", () => {
  test("gives several runs that wait at once each a task, and ends all of them", async () => {
    const source = createPushedTasks();
    const { signal } = new AbortController();
    const asked = [0, 1, 2].map(async (index) => (await source.at(index, { signal }))?.task.id);
    source.push({ task: lampTask(0) }, { task: lampTask(1) });
    source.end();
    expect(await Promise.all(asked)).toEqual(["lamp/test/0", "lamp/test/1", undefined]);
    expect(source.waitingCount).toBe(0);
  });

  test("is left by one that stops, and waited for by the other", async () => {
    const source = createPushedTasks();
    const stop = new AbortController();
    const { signal } = new AbortController();
    const left = source.at(0, { signal: stop.signal });
    const asked = source.at(0, { signal });
    stop.abort(new Error("that run was stopped"));
    await expect(left).rejects.toThrow("that run was stopped");
    source.push({ task: lampTask(0) });
    expect((await asked)?.task.id).toBe("lamp/test/0");
  });

  test("refuses a push after its end, because no run may be left to play it", () => {
    const source = createPushedTasks();
    source.push({ task: lampTask(0) });
    source.end();
    expect(() => source.push({ task: lampTask(1) })).toThrow(
      "Cannot push lamp/test/1: end() was called, and the run that takes the tasks may have ended; call end() after " +
        "the last push(), or start another run with a source of its own",
    );
    // The waiting task is not lost.
    expect(source.waitingCount).toBe(1);
    source.push();
    source.end();
  });
});

describe("an id that was there before", () => {
  test("is refused when it is pushed, and no task of that push is accepted", async () => {
    const source = createPushedTasks();
    source.push({ task: lampTask(3) });
    expect(() => source.push({ task: lampTask(4) }, { task: lampTask(3) })).toThrow(
      "Cannot push lamp/test/3: it was pushed before; give a task that is to be played again a `groupId` of its own",
    );
    expect(() => source.push({ task: lampTask(5) }, { task: lampTask(5) })).toThrow(
      "Cannot push lamp/test/5: it was pushed before",
    );
    source.push({ task: lampTask(4) }, { task: lampTask(3), groupId: "once more" });
    source.end();
    const groups = await takeAll(startLamps({ source }));
    expect(idsOf(groups)).toEqual(["lamp/test/3", "lamp/test/4", "once more"]);
  });

  test("ends the run when the started groups have ended", async () => {
    const drawn = withResolvers();
    async function* tasks(): AsyncGenerator<Task> {
      yield lampTask(0);
      yield lampTask(1);
      yield lampTask(0);
      throw new Error("no task is drawn after it");
    }
    const source = createTaskStream(tasks());
    const given: TaskSource = {
      ...source,
      at: async (index, options) => {
        const sourced = await source.at(index, options);
        if (index === 2) drawn.resolve();
        return sourced;
      },
    };
    // No attempt ends before the task that cannot be played is drawn.
    const engine = switchingEngine(async () => await drawn.promise);
    const run = startLamps({ source: given, engine, admission: { concurrency: 8 } });
    const groups: EpisodeGroup[] = [];
    const taking = (async () => {
      for await (const group of run) groups.push(group);
    })();
    await expect(taking).rejects.toThrow(
      "Cannot play lamp: task 0 has the id of another one, lamp/test/0",
    );
    expect(idsOf(groups).toSorted()).toEqual(["lamp/test/0", "lamp/test/1"]);
    expect(groups.map(({ episodes }) => episodes.length)).toEqual([2, 2]);
  });

  test("belongs to an earlier start: the same list continues where it stopped", async () => {
    const tasks = [0, 1, 2, 3].map(lampTask);
    const taken: string[] = [];
    {
      await using folder = await openLamps(dir);
      const run = startLamps({
        folder,
        source: createTaskStream(tasks),
        redeliver: true,
        admission: { concurrency: 1, ahead: 1 },
      });
      for await (const { groupId } of run) {
        taken.push(groupId);
        if (taken.length === 2) break;
      }
    }
    for (const expected of [4, 0]) {
      await using folder = await openLamps(dir);
      // Another form of the same tasks.
      const again = tasks.map(({ id, ...rest }) => ({ ...rest, id }));
      const run = startLamps({ folder, source: createTaskStream(again), redeliver: true });
      const groups = await takeAll(run);
      for (const { groupId } of groups) taken.push(groupId);
      expect(await run.result).toMatchObject({ end: "finished" });
      if (expected === 0) expect(groups).toEqual([]);
    }
    // The last group before the first start was left may have been taken or not.
    expect(new Set(taken)).toEqual(new Set(tasks.map(({ id }) => id)));
    expect(taken.length).toBe(5);
  });

  test("is refused if an earlier start started another task under it", async () => {
    {
      await using folder = await openLamps(dir);
      await startLamps({ folder, source: createTaskStream([lampTask(0)]) }).result;
    }
    await using folder = await openLamps(dir);
    const other = { ...lampTask(0), instruction: "Leave the lamp off." };
    const source = createTaskStream([lampTask(1), other]);
    const run = startLamps({ folder, source });
    const groups: EpisodeGroup[] = [];
    const taking = (async () => {
      for await (const group of run) groups.push(group);
    })();
    await expect(taking).rejects.toThrow(
      "Cannot play lamp: the source gives another task as lamp/test/0 than an earlier start began under that id; " +
        "give it a `groupId` of its own, or choose another folder",
    );
    expect(idsOf(groups)).toEqual(["lamp/test/1"]);
  });

  test("ends a run with a source that gives no other task", async () => {
    {
      await using folder = await openLamps(dir);
      await startLamps({ folder, source: createTaskStream([lampTask(0)]) }).result;
    }
    await using folder = await openLamps(dir);
    const source = createCurriculum(() => ({ task: lampTask(0) }));
    await expect(takeAll(startLamps({ folder, source }))).rejects.toThrow(
      "Cannot play lamp: task 0 has the id of another one, lamp/test/0",
    );
  });
});
