import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { verifyRun } from "../verify/verify-run.ts";
import type { Engine } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { preparedEngine, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { Task } from "../task.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import {
  fiftyLamps,
  lampList,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "./lamp-groups.fixture.ts";
import { lampSetup } from "./lamp-run.fixture.ts";
import { rolloutIdsIn } from "./folder/run-folder.fixture.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import {
  boundedSource,
  createCurriculum,
  createEndlessTasks,
  createTaskList,
  type SourcedTask,
  type TaskSource,
} from "./schedule/task-source.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-earlier-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

const remedy = "start with the same tasks in the same order, or in another folder";

const listOf = (...taskIndexes: number[]): TaskSource =>
  createTaskList(fiftyLamps, { split: "test", taskIndexes });

const passes = (seed: number): TaskSource =>
  boundedSource(
    createEndlessTasks(fiftyLamps, { split: "test", taskIndexes: [0, 1, 2, 3], seed }),
    4,
  );

/** Lamps with their own names: an index does not say which lamp it is. */
function named(...names: string[]): { environment: Environment; source: TaskSource } {
  const environment: Environment = {
    ...fiftyLamps,
    splits: { test: names.length },
    task: (split, index) => ({ ...fiftyLamps.task(split, index), id: `lamp/${names[index]}` }),
  };
  const taskIndexes = names.map((_, index) => index);
  return { environment, source: createTaskList(environment, { split: "test", taskIndexes }) };
}

/** Plays a start, one attempt after another, and returns the played rollouts; rejects if the start is refused. */
async function play(
  {
    source,
    environment = fiftyLamps,
    ...rest
  }: Partial<StartRunOptions> & { readonly environment?: Environment },
  engine = switchingEngine(),
): Promise<readonly string[]> {
  await using folder = await openLamps(dir);
  const setup = lampSetup({ environment, engine });
  const played: string[] = [];
  const run = startLamps({
    setup,
    folder,
    grouping: { size: 1 },
    ...(source && { source }),
    admission: { concurrency: 1 },
    onEpisode: ({ rolloutId }) => void played.push(rolloutId),
    ...rest,
  });
  await run.result;
  return played;
}

/** Plays four at once until those with these places have ended and all others have sampled a turn. */
async function stopWith(
  about: { readonly source: TaskSource; readonly environment?: Environment },
  ended: readonly number[],
): Promise<void> {
  const stop = new AbortController();
  const places = new Map<string, number>();
  const source: TaskSource = {
    ...about.source,
    async at(place, options) {
      const sourced = await about.source.at(place, options);
      if (sourced) places.set(`${sourced.groupId ?? sourced.task.id}#0`, place);
      return sourced;
    },
  };
  const [inFlight, finished] = [withResolvers(), withResolvers()];
  let [heldCount, finishedCount] = [0, 0];
  const engine = switchingEngine(async ({ sessionId }, turn) => {
    if (turn === 0 || ended.includes(places.get(sessionId)!)) return undefined;
    if (++heldCount === 4 - ended.length) inFlight.resolve();
    return await new Promise(() => {});
  });
  const stopped = play(
    {
      ...about,
      source,
      admission: { concurrency: 4 },
      signal: stop.signal,
      onEpisode: () => {
        if (++finishedCount === ended.length) finished.resolve();
      },
    },
    engine,
  );
  if (ended.length > 0) await finished.promise;
  await inFlight.promise;
  stop.abort();
  await stopped;
}

/** Worlds that make external calls as they open. */
const loadedLamps: Environment = {
  ...fiftyLamps,
  async open(task, options) {
    await options.outside!("load", () => ({ a: 1 }));
    return await fiftyLamps.open(task, options);
  },
};

/** All that is in the folder. */
async function contents(): Promise<Readonly<Record<string, string>>> {
  const names = (await readdir(dir)).toSorted();
  const texts = names.map(async (name) => [name, await readFile(path.join(dir, name), "utf8")]);
  return Object.fromEntries(await Promise.all(texts)) as Readonly<Record<string, string>>;
}

describe("a start with other tasks is refused before it changes anything", () => {
  const abcd = named("a", "b", "c", "d");
  const inFront = named("new", "a", "b", "c", "d");
  const cases: readonly {
    readonly what: string;
    readonly right: { readonly source: TaskSource; readonly environment?: Environment };
    readonly wrong: { readonly source: TaskSource; readonly environment?: Environment };
    readonly ended: readonly number[];
    readonly why: string;
    readonly rest: readonly string[];
  }[] = [
    {
      what: "if no attempt had ended",
      right: { source: listOf(0, 1, 2, 3) },
      wrong: { source: listOf(4, 5, 6, 7) },
      ended: [],
      why: "0: lamp/test/0#0 was started in its place, and the source of tasks gives lamp/test/4",
      rest: ["lamp/test/0#0", "lamp/test/1#0", "lamp/test/2#0", "lamp/test/3#0"],
    },
    {
      what: "if the ends are recorded after later starts",
      right: { source: listOf(0, 1, 2, 3) },
      wrong: { source: listOf(0, 5, 6, 7) },
      ended: [0, 2],
      why: "1: lamp/test/1#0 was started in its place, and the source of tasks gives lamp/test/5",
      rest: ["lamp/test/1#0", "lamp/test/3#0"],
    },
    {
      what: "where passes have another order",
      right: { source: passes(1) },
      wrong: { source: passes(2) },
      ended: [2],
      why: "0: lamp/test/0#0 was started in its place, and the source of tasks gives lamp/test/1",
      rest: ["lamp/test/0#0", "lamp/test/3#0", "lamp/test/1#0"],
    },
    {
      what: "where another is put in front, and indexes tell nothing",
      right: abcd,
      wrong: inFront,
      ended: [2, 3],
      why: "0: lamp/a#0 was started in its place, and the source of tasks gives lamp/new",
      rest: ["lamp/a#0", "lamp/b#0"],
    },
    {
      what: "where another is put between those that ended, and indexes tell nothing",
      right: abcd,
      wrong: named("a", "new", "b", "c", "d"),
      ended: [0, 1, 2, 3],
      why: "3: lamp/d#0 is finished in its place, and the source of tasks gives lamp/c",
      rest: [],
    },
  ];

  test.each(cases.map((each) => [each.what, each] as const))("%s", async (_, each) => {
    const { right, wrong, ended, why, rest } = each;
    if (ended.length === 4) await play(right);
    else await stopWith(right, ended);
    const before = await contents();
    await expect(play(wrong)).rejects.toThrow(`Cannot resume group ${why} there now; ${remedy}`);
    expect(await contents()).toEqual(before);
    expect(await play(right)).toEqual(rest);
  });

  test.each([
    ["", fiftyLamps],
    [", also if its worlds made calls while they opened", loadedLamps],
  ])("but not if nothing was sampled in started attempts%s", async (_, environment) => {
    const stop = new AbortController();
    const asked = withResolvers();
    const engine = switchingEngine(async () => {
      asked.resolve();
      return await new Promise(() => {});
    });
    const stopped = play({ environment, source: listOf(0), signal: stop.signal }, engine);
    await asked.promise;
    stop.abort();
    await stopped;
    expect(await contents()).toMatchObject({
      "recording.jsonl": expect.stringContaining('"type":"begin","rolloutId":"lamp/test/0#0"'),
    });
    expect(await play({ environment, source: listOf(9) })).toEqual(["lamp/test/9#0"]);
  });

  test("resumes either list if starts with both have started attempts at an index", async () => {
    await stopWith({ source: listOf(0, 1, 2, 3) }, []);
    const file = path.join(dir, "recording.jsonl");
    const text = await readFile(file, "utf8");
    await writeFile(file, text + text.replaceAll("lamp/test/0", "lamp/test/9"));
    expect(await play({ source: listOf(9) })).toEqual(["lamp/test/9#0"]);
  });

  test.each([
    ["was recorded in another run", /"run":"[^"]*"/g, '"run":"another"'],
    ["names no place", /"groupIndex":\d+/g, '"groupIndex":null'],
  ])("does not take %s for an attempt of this group", async (_, said, instead) => {
    await stopWith({ source: listOf(0, 1, 2, 3) }, []);
    const file = path.join(dir, "recording.jsonl");
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replaceAll(said, instead));
    expect(await play({ source: listOf(9) })).toEqual(["lamp/test/9#0"]);
  });
});

/**
 * Six lamps, as from a tasks file that can only be read forward; `asked` lists the requested
 * positions in order.
 */
function readForward(): { readonly source: TaskSource; readonly asked: readonly number[] } {
  const asked: number[] = [];
  let next = 0;
  let task: Task | undefined;
  const at = (place: number): SourcedTask | undefined => {
    asked.push(place);
    while (next <= place) {
      task = next < 6 ? fiftyLamps.task("test", next) : undefined;
      next += 1;
    }
    return task && { task };
  };
  return { source: { repeatable: true, at }, asked };
}

/** Returns lamps, at most `most` at once, until groups end; `asked` lists the indexes in order. */
function limited(most: number, ...taskIndexes: number[]) {
  const asked: number[] = [];
  const tasks = listOf(...taskIndexes);
  const underWay = { count: 0 };
  let room = withResolvers();
  const source: TaskSource = {
    repeatable: true,
    length: taskIndexes.length,
    async at(place, options) {
      asked.push(place);
      while (underWay.count >= most) await room.promise;
      underWay.count += 1;
      return await tasks.at(place, options);
    },
    onGroupEnd() {
      underWay.count -= 1;
      room.resolve();
      room = withResolvers();
    },
  };
  return { source, asked };
}

describe("a start with a source that only reads forward", () => {
  test.each([
    ["all that was begun", [], [0, 1, 2, 3, 4, 5]],
    ["what was begun beside what ended", [1, 2], [0, 3, 4, 5]],
  ])("resumes %s, and asks for each index once", async (_, ended, rest) => {
    await stopWith(readForward(), ended);
    const { source, asked } = readForward();
    expect(await play({ source })).toEqual(rest.map((place) => `lamp/test/${place}#0`));
    expect(asked).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  test("resumes if only finished attempts are known", async () => {
    await stopWith(readForward(), [1, 2]);
    await rm(path.join(dir, "recording.jsonl"));
    const { source, asked } = readForward();
    const rest = [0, 3, 4, 5].map((place) => `lamp/test/${place}#0`);
    expect(await play({ source })).toEqual(rest);
    expect(asked).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  test("delivers complete groups again", async () => {
    await stopWith(readForward(), [1, 2]);
    const { source, asked } = readForward();
    await using folder = await openLamps(dir);
    const run = startLamps({ source, folder, redeliver: true, grouping: { size: 1 } });
    const groups = await takeAll(run);
    expect(groups.map(({ groupId }) => groupId)).toEqual(
      [0, 1, 2, 3, 4, 5].map((place) => `lamp/test/${place}`),
    );
    expect(asked).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });
});

describe("a start with a source that waits for groups to end", () => {
  test.each([
    ["all that was begun", [], [0, 1, 2, 3, 4, 5]],
    ["what was begun beside what ended", [1, 2], [0, 3, 4, 5]],
  ])("resumes %s", async (_, ended, rest) => {
    await stopWith(limited(4, 0, 1, 2, 3, 4, 5), ended);
    const { source, asked } = limited(1, 0, 1, 2, 3, 4, 5);
    expect(await play({ source })).toEqual(rest.map((place) => `lamp/test/${place}#0`));
    expect(asked).toEqual(rest);
  });

  test.each([
    ["after an open one", [1, 2], [0, 3, 4, 5]],
    ["before one that is open", [0, 1], [2, 3, 4, 5]],
  ])("delivers complete groups again %s, without asking for them", async (_, ended, rest) => {
    await stopWith(limited(4, 0, 1, 2, 3, 4, 5), ended);
    const { source, asked } = limited(1, 0, 1, 2, 3, 4, 5);
    await using folder = await openLamps(dir);
    const run = startLamps({ source, folder, redeliver: true, grouping: { size: 1 } });
    const groups = await takeAll(run);
    expect(groups.map(({ groupId, task }) => [groupId, task.id])).toEqual(
      [0, 1, 2, 3, 4, 5].map((place) => [`lamp/test/${place}`, `lamp/test/${place}`]),
    );
    expect(asked).toEqual(rest);
  });

  test("delivers recorded tasks again, and asks for the others", async () => {
    const asked: number[] = [];
    const own = (): TaskSource => ({
      length: 2,
      repeatable: true,
      onGroupEnd: () => {},
      at: (place) => {
        asked.push(place);
        return { task: { ...fiftyLamps.task("test", place), instruction: `Lamp ${place} off.` } };
      },
    });
    const handedBy = async (isRecorded: boolean) => {
      asked.length = 0;
      const folder = await openLamps(dir);
      try {
        await startLamps({ source: own(), folder, redeliver: true }).result;
      } finally {
        await folder[Symbol.asyncDispose]();
      }
      if (!isRecorded) await rm(path.join(dir, "recording.jsonl"));
      await using again = await openLamps(dir);
      const run = startLamps({ source: own(), folder: again, redeliver: true });
      return (await takeAll(run)).map(({ task }) => task.instruction);
    };
    const both = ["Lamp 0 off.", "Lamp 1 off."];
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    expect([await handedBy(true), asked]).toEqual([both, [0, 1]]);
    expect(warned).not.toHaveBeenCalled();
    await rm(dir, { recursive: true });
    expect([await handedBy(false), asked]).toEqual([both, [0, 1, 0, 1]]);
    // Another source might give no task before a group has ended.
    expect(warned).toHaveBeenCalledExactlyOnceWith(
      "The source of tasks is asked once more for groups that have ended (2), before any group is played: " +
        "their recordings do not hold their tasks. A source that gives no other groups until onGroupEnd() reports " +
        "groups that end waits for ever; record everything (--record all), or start without redeliver",
    );
    warned.mockRestore();
  });

  test("is refused at the first other task, before it is played", async () => {
    await stopWith(limited(4, 0, 1, 2, 3), []);
    const before = await contents();
    await expect(play(limited(1, 4, 5, 6, 7))).rejects.toThrow(
      "Cannot resume group 0: lamp/test/0#0 was started in its place, and the source of tasks gives lamp/test/4",
    );
    expect(await contents()).toEqual(before);
    await expect(play(limited(1, 0, 5, 6, 7))).rejects.toThrow(
      "Cannot resume group 1: lamp/test/1#0 was started in its place, and the source of tasks gives lamp/test/5",
    );
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["lamp/test/0#0"]);
    expect(await play(limited(1, 0, 1, 2, 3))).toEqual(
      [1, 2, 3].map((place) => `lamp/test/${place}#0`),
    );
  });
});

describe("a start with a source of fewer groups", () => {
  test("keeps the other groups in the run's totals and in slime's rows", async () => {
    const results: unknown[] = [];
    for (const source of [listOf(0, 1, 2, 3), listOf(0, 1)]) {
      await using folder = await openLamps(dir, { format: "slime" });
      const { progress, slime } = await startLamps({ source, folder }).result;
      const { planned, finished } = progress;
      results.push({ planned, finished, slime });
    }
    const all = { planned: 8, finished: 8, slime: { groups: 4, rows: 8 } };
    expect(results).toEqual([all, all]);
    const rollouts = [0, 1, 2, 3].flatMap((index) => [
      `lamp/test/${index}#0`,
      `lamp/test/${index}#1`,
    ]);
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(rollouts);
    const { violations } = await verifyRun(dir);
    expect(violations.filter(({ file }) => file !== "run.json")).toEqual([]);
  });

  test("delivers none of the others, which a later start does", async () => {
    const handed: unknown[] = [];
    for (const source of [listOf(0, 1, 2), listOf(0), listOf(0, 1, 2)]) {
      await using folder = await openLamps(dir);
      const run = startLamps({ source, folder, redeliver: true, grouping: { size: 1 } });
      await run.result;
      // The trainer of the first start is killed before it takes a group.
      const groups = handed.length === 0 ? [] : await takeAll(run);
      handed.push(groups.map(({ groupId }) => groupId));
    }
    expect(handed).toEqual([[], ["lamp/test/0"], ["lamp/test/1", "lamp/test/2"]]);
  });

  test("plays none of them again if the source is not repeatable", async () => {
    const source = (most: number): TaskSource =>
      boundedSource(
        createCurriculum((place) => ({ task: fiftyLamps.task("test", place) })),
        most,
      );
    expect(await play({ source: source(3) })).toHaveLength(3);
    expect(await play({ source: source(1) })).toEqual([]);
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toHaveLength(3);
  });

  test.each([0, 1])(
    "resumes open groups if the source is not repeatable and gives %d",
    async (length) => {
      const lamps = () => createCurriculum((place) => ({ task: fiftyLamps.task("test", place) }));
      await stopWith({ source: boundedSource(lamps(), 4) }, []);
      await using folder = await openLamps(dir);
      const run = startLamps({ source: { ...lamps(), length }, folder, grouping: { size: 1 } });
      expect(await takeAll(run)).toHaveLength(4);
      const progress = { planned: 4, finished: 4 };
      expect(await run.result).toMatchObject({ end: "finished", progress });
    },
  );
});

describe("an episode with lost rows", () => {
  /** Plays a start. @returns How many turns were sampled, and the attempts that the episodes are. */
  async function playCounting({ retryFailed = false, isDown = false } = {}) {
    let count = 0;
    const folder = await openLamps(dir, { retryFailed });
    try {
      const engine = switchingEngine(({ sessionId }, turn) => {
        count++;
        const isLost = isDown && turn === 1 && sessionId === "lamp/test/0#0";
        return isLost ? new Error("down") : undefined;
      });
      const about = { source: listOf(0, 1), grouping: { size: 1, attempts: 1 } };
      await takeAll(startLamps({ folder, engine, ...about }));
    } finally {
      await folder[Symbol.asyncDispose]();
    }
    const lines = (await readFile(path.join(dir, "episodes.jsonl"), "utf8")).trim().split("\n");
    const attempts = lines.map((line) => (JSON.parse(line) as { attempt?: number }).attempt ?? 1);
    return { count, attempts };
  }

  test.each([0, 1, 2])("is restored, also after %d starts that ended before", async (starts) => {
    expect(await playCounting()).toEqual({ count: 4, attempts: [1, 1] });
    const before = await readFile(path.join(dir, "samples.jsonl"), "utf8");
    await writeFile(path.join(dir, "samples.jsonl"), "");
    for (let start = 0; start < starts; start++) {
      await (await openLamps(dir))[Symbol.asyncDispose]();
    }
    expect(await playCounting()).toEqual({ count: 0, attempts: [1, 1] });
    const rows = (text: string) => text.trim().split("\n").toSorted();
    const after = await readFile(path.join(dir, "samples.jsonl"), "utf8");
    expect(rows(after)).toEqual(rows(before));
    expect(await verifyRun(dir)).toMatchObject({ violations: [] });
    expect(await playCounting()).toEqual({ count: 0, attempts: [1, 1] });
  });

  test.each([0, 1])(
    "is played again if it failed and that is requested, after %d starts",
    async (starts) => {
      expect(await playCounting({ isDown: true })).toEqual({ count: 4, attempts: [1, 1] });
      await writeFile(path.join(dir, "samples.jsonl"), "");
      for (let start = 0; start < starts; start++) {
        await (await openLamps(dir))[Symbol.asyncDispose]();
      }
      // Killed before it plays.
      await (await openLamps(dir, { retryFailed: true }))[Symbol.asyncDispose]();
      const { count, attempts } = await playCounting({ retryFailed: true });
      expect([count, attempts.toSorted((a, b) => a - b)]).toEqual([2, [1, 2]]);
      expect(await verifyRun(dir)).toMatchObject({ violations: [] });
    },
  );
});

describe("a start with lost events", () => {
  const takeRedelivered = async (): Promise<number> => {
    await using folder = await openLamps(dir);
    return (await takeAll(startLamps({ folder, redeliver: true }))).length;
  };

  test.each([
    ["gone", "", "records no start of this run, for example because it was deleted or emptied"],
    ["damaged", '~"type":"group-taken"', "has lines that cannot be read (3)"],
  ])("warns if events.jsonl is %s", async (_, instead, what) => {
    const file = path.join(dir, "events.jsonl");
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    try {
      expect(await takeRedelivered()).toBe(3);
      // As a crash leaves it.
      await appendFile(file, '{"type":"group-ta');
      expect(await takeRedelivered()).toBe(0);
      expect(warned).not.toHaveBeenCalled();
      const lines = await readFile(file, "utf8");
      await writeFile(
        file,
        instead === "" ? "" : lines.replaceAll('{"type":"group-taken"', instead),
      );
      expect(await takeRedelivered()).toBe(3);
      expect(warned.mock.calls.map(([text]) => text)).toEqual([
        `The run's events.jsonl ${what}: groups that were taken may be delivered again, and groups whose tasks the ` +
          "source does not give again are not resumed",
      ]);
    } finally {
      warned.mockRestore();
    }
  });
});

/** An engine that names the version of its weights, as SGLang does with `weight_version`. */
function namedEngine(version: () => number): Engine {
  const [stop] = createCharacterRenderer().stopTokenIds;
  const inner = preparedEngine([]);
  return {
    ...inner,
    describe: async (options) => ({
      ...(await inner.describe(options)),
      policyVersion: String(version()),
    }),
    async generate(request, options) {
      const stops = request.promptIds.filter((id) => id === stop).length;
      const { outputIds = [] } = says(stops < 4 ? switchCall : "Goodbye!");
      const piece = {
        requestId: request.requestId,
        tokenCount: outputIds.length,
        policyVersion: String(version()),
        finish: "stop" as const,
      };
      const reply = { outputIds, pieces: [piece] };
      return await preparedEngine([reply]).generate(request, options);
    },
  };
}

test.each(["drop", "mask", "mark"] as const)(
  "groups that waited over a restart are as old as the engine says, without announced versions: %s",
  async (beyond) => {
    let version = 3;
    const engine = namedEngine(() => version);
    const seen: unknown[] = [];
    for (const current of [3, 7]) {
      version = current;
      await using folder = await openLamps(dir);
      const run = startLamps({
        engine,
        folder,
        redeliver: true,
        staleness: { max: 1, beyond },
      });
      if (current === 3) await run.result;
      else {
        for await (const { staleness, episodes } of run) {
          const masks = episodes.flatMap(({ segments }) =>
            segments.map(({ lossMask }) => lossMask),
          );
          seen.push([staleness, masks.flat().includes(1)]);
        }
      }
    }
    const each = [4, beyond === "mark"];
    expect(seen).toEqual(beyond === "drop" ? [] : [each, each, each]);
  },
);

test("a group that was stopped at its score is as old as the engine says, too", async () => {
  let version = 3;
  const engine = namedEngine(() => version);
  const stop = new AbortController();
  const seen: unknown[] = [];
  for (const current of [3, 7]) {
    version = current;
    const scored = withResolvers();
    const environment: Environment = {
      ...fiftyLamps,
      async open(task, options) {
        const world = await fiftyLamps.open(task, options);
        if (current === 7) return world;
        world.score = async () => {
          scored.resolve();
          return await new Promise<never>((_, reject) => {
            stop.signal.addEventListener("abort", () => reject(new Error("stopped")));
          });
        };
        return world;
      },
    };
    await using folder = await openLamps(dir);
    const run = startLamps({
      folder,
      redeliver: true,
      signal: stop.signal,
      source: lampList(1),
      setup: lampSetup({ environment, engine }),
      grouping: { size: 1 },
      staleness: { max: 1, beyond: "mark" },
      ...(current === 7 && { signal: new AbortController().signal }),
    });
    if (current === 3) {
      await scored.promise;
      stop.abort();
      await run.result.catch(() => {});
    } else for await (const { staleness } of run) seen.push(staleness);
  }
  expect(seen).toEqual([4]);
});
