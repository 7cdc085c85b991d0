import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { verifyRun } from "../verify/verify-run.ts";
import { readRun } from "../api/read-run.ts";
import { takeTurn } from "../async/take-turn.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { Engine } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import {
  fiftyLamps,
  lampList,
  startLamps,
  switchingEngine,
  takeAll,
} from "./lamp-groups.fixture.ts";
import { inputsBefore } from "../episode/inputs/input.ts";
import { playEpisode } from "../episode/play-episode.ts";
import type { PlayAttempt } from "../episode/episode-setup.ts";
import { storedSettings } from "../composition/config/stored-settings.ts";
import { playHere, type AttemptPlayer } from "./attempt/attempt-player.ts";
import { lampSetup } from "./lamp-run.fixture.ts";
import type { RecordedAttempt } from "./recording/read-recording.ts";
import { RunFolder, type RunManifest } from "./folder/run-folder.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { createEndlessTasks, createTaskList, type TaskSource } from "./schedule/task-source.ts";
import { createTaskStream } from "./schedule/streamed-tasks.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-own-manifest-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const own: RunManifest = { format: 1, turnwright: "mine", configuration: { k: 2 }, found: {} };

const { vocabularySize } = createCharacterRenderer().codec;

async function play(manifest: RunManifest): Promise<RunManifest> {
  await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
  await takeAll(startLamps({ folder }));
  return folder.manifest;
}

/** Epoch after epoch over three lamps. */
function boundless(): TaskSource {
  return createEndlessTasks(fiftyLamps, { split: "test", taskIndexes: [0, 1, 2], seed: 0 });
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

/** Returns the source without its length. */
function withoutLength({ length: _length, ...source }: TaskSource): TaskSource {
  return source;
}

async function stored(): Promise<RunManifest> {
  return JSON.parse(await readFile(path.join(dir, "run.json"), "utf8")) as RunManifest;
}

test("a program's own manifest gets the members that verify needs", async () => {
  const found = { plan: { isOpen: true }, vocabularySize, sampling: {} };
  const manifest = await play(own);
  expect(manifest).toMatchObject({ ...own, found });
  expect(await stored()).toEqual(manifest);
  expect(await verifyRun(dir)).toMatchObject({ isFinished: true, episodes: 6, violations: [] });
  // A later start of the same run, with the same manifest.
  expect(await play(own)).toEqual(manifest);
  expect(await stored()).toEqual(manifest);
});

test("the found members of a program's own manifest stay", async () => {
  const found = {
    trainer: "mine",
    plan: { environment: "lamp", split: "test", taskIndexes: [0, 1, 2], sampleCount: 2, seed: 0 },
  };
  expect((await play({ ...own, found })).found).toEqual({ ...found, vocabularySize, sampling: {} });
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
  [
    "of other tasks",
    { source: createTaskList(fiftyLamps, { split: "test", taskIndexes: [0, 1, 3] }) },
  ],
  ["of more tasks", { source: lampList(4) }],
  ["of groups of one's own", { source: named() }],
  ["of larger groups", { grouping: { size: 3 } }],
  ["with other seeds", { seed: 7 }],
])("the plan of another run is left open by one %s", async (_, options) => {
  const manifest = { ...own, found: { trainer: "mine", plan: lampsPlan } };
  {
    await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
    const run = startLamps({ folder, ...options });
    let count = 0;
    for await (const _group of run) if (++count === 5) void run.interrupt();
  }
  const found = { trainer: "mine", plan: { isOpen: true }, vocabularySize, sampling: {} };
  expect((await stored()).found).toEqual(found);
  expect(await verifyRun(dir)).toMatchObject({ violations: [] });
});

test("a folder with another run's plan continues, and is sound", async () => {
  // As it was written before plans were compared with attempts.
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

test.each<[string, TaskSource, object]>([
  ["in groups of one's own", named(), lampsPlan],
  ["of another split", lampList(3), { ...lampsPlan, split: "train" }],
  ["as a fork", lampList(3), { ...lampsPlan, groupId: "fork-1" }],
])("a plan beside which a finished run was played %s is left open", async (_, source, plan) => {
  {
    await using folder = await RunFolder.open(dir, own, { retryFailed: false });
    await takeAll(startLamps({ folder, source }));
  }
  const found = { plan, vocabularySize, sampling: {} };
  await writeFile(path.join(dir, "run.json"), JSON.stringify({ ...(await stored()), found }));
  expect((await verifyRun(dir)).violations.map(({ rule }) => rule)).toContain("plan");
  {
    await using folder = await RunFolder.open(dir, own, { retryFailed: false });
    await takeAll(startLamps({ folder, source }));
  }
  expect((await stored()).found).toEqual({ plan: { isOpen: true }, vocabularySize, sampling: {} });
  expect(await verifyRun(dir)).toMatchObject({ isFinished: true, episodes: 6, violations: [] });
});

test("tasks with an environment's own names are the planned ones", async () => {
  const task: Environment["task"] = (split, index) => ({
    ...fiftyLamps.task(split, index),
    id: `lamp-${index}`,
  });
  const environment = { ...fiftyLamps, task };
  const source = createTaskList(environment, { split: "test", taskIndexes: [0, 1, 2] });
  const setup = lampSetup({ environment, engine: switchingEngine() });
  const found = { plan: lampsPlan, vocabularySize, sampling: {} };
  for (const _start of [1, 2]) {
    await using folder = await RunFolder.open(dir, { ...own, found }, { retryFailed: false });
    await takeAll(startLamps({ folder, source, setup }));
    expect((await stored()).found).toEqual(found);
  }
  expect(await verifyRun(dir)).toMatchObject({ planned: 6, episodes: 6, violations: [] });
});

test.each<[string, TaskSource, TaskSource]>([
  ["does not say how many there are", withoutLength(lampList(3)), withoutLength(lampList(3))],
  ["gives fewer", lampList(2), lampList(3)],
])("a plan stays if a source that follows it %s", async (_, source, whole) => {
  const found = { plan: lampsPlan, vocabularySize, sampling: {} };
  const manifest = { ...own, configuration: { format: "slime" }, found };
  const options = { retryFailed: false, format: "slime" } as const;
  {
    await using folder = await RunFolder.open(dir, manifest, options);
    const run = startLamps({ folder, source, admission: { concurrency: 1 } });
    let count = 0;
    for await (const _group of run) if (++count === 2) void run.interrupt();
  }
  expect((await stored()).found).toEqual(found);
  const { isFinished, planned, violations } = await verifyRun(dir);
  expect({ isFinished, planned, violations }).toEqual({
    isFinished: false,
    planned: 6,
    violations: [],
  });
  // Attempts that were not played are counted too.
  const { episodes } = await (await readRun(dir)).evaluation();
  expect(episodes).toMatchObject({ planned: 6, scored: 4 });
  {
    await using folder = await RunFolder.open(dir, manifest, options);
    await takeAll(startLamps({ folder, source: whole }));
  }
  expect((await stored()).found).toEqual(found);
  expect(await verifyRun(dir)).toMatchObject({ isFinished: true, episodes: 6, violations: [] });
});

test.each([
  ["of which attempts are left", "lamp/test/1#1", 5],
  ["of which none has ended", "lamp/test/1", 4],
])("a plan is not finished if a source skips a group %s", async (_, held, count) => {
  const manifest = { ...own, found: { plan: lampsPlan, vocabularySize } };
  {
    const stop = new AbortController();
    const engine = switchingEngine(async ({ sessionId }, turn) => {
      if (turn > 0 && sessionId.startsWith(held)) await new Promise(() => {});
    });
    let ended = 0;
    const onEpisode = (): void => {
      if (++ended === count) stop.abort();
    };
    await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
    const around = { admission: { concurrency: 6 }, engine, onEpisode, signal: stop.signal };
    await takeAll(startLamps({ folder, ...around }));
  }
  const summary = async (): Promise<unknown> =>
    JSON.parse(await readFile(path.join(dir, "summary.json"), "utf8"));
  const starts: [TaskSource, "interrupted" | "finished", number][] = [
    [createTaskStream([]), "interrupted", count],
    [lampList(3), "finished", 6],
  ];
  for (const [source, end, finished] of starts) {
    await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
    const run = startLamps({ folder, source });
    await takeAll(run);
    expect(await run.result).toMatchObject({ end: "finished" });
    expect(await summary()).toMatchObject({ end, planned: 6, finished });
    const { isFinished, episodes, violations } = await verifyRun(dir);
    const found = { isFinished, episodes, violations };
    expect(found).toEqual({ isFinished: end === "finished", episodes: finished, violations: [] });
  }
  expect((await stored()).found).toMatchObject(manifest.found);
});

test("no attempt is played while the plan is being marked as open", async () => {
  await using folder = await RunFolder.open(
    dir,
    { ...own, found: { plan: { ...lampsPlan, taskIndexes: [0] }, vocabularySize, sampling: {} } },
    { retryFailed: false },
  );
  const source = createTaskList(fiftyLamps, { split: "test", taskIndexes: [1] });
  const write = folder.updateFound.bind(folder);
  const writing = vi.spyOn(folder, "updateFound").mockImplementation(async (known) => {
    for (let turn = 0; turn < 100; turn++) await takeTurn();
    expect(run.progress()).toMatchObject({ running: 0, finished: 0 });
    await write(known);
  });
  const run = startLamps({ folder, source });
  await takeAll(run);
  expect(writing).toHaveBeenCalledTimes(1);
  expect(await run.result).toMatchObject({ end: "finished", progress: { finished: 2 } });
  expect((await stored()).found).toEqual({ plan: { isOpen: true }, vocabularySize, sampling: {} });
});

test("a manifest may leave out found", async () => {
  const { found: _none, ...bare } = own;
  await play(bare as RunManifest);
  expect((await stored()).found).toEqual({ plan: { isOpen: true }, vocabularySize, sampling: {} });
  expect(await verifyRun(dir)).toMatchObject({ episodes: 6, violations: [] });
});

/** Plays three lamps with a program's own manifest and some sampling. */
async function playSampled(
  sampling: StartRunOptions["setup"]["sampling"],
  {
    engine = switchingEngine(),
    found = {},
    play,
    retryFailed = false,
    ...options
  }: Pick<StartRunOptions["setup"], "play"> &
    Partial<StartRunOptions> & {
      engine?: Engine;
      found?: RunManifest["found"];
      retryFailed?: boolean;
    } = {},
): Promise<RunManifest["found"]> {
  await using folder = await RunFolder.open(dir, { ...own, found }, { retryFailed });
  const setup = {
    ...lampSetup({ environment: fiftyLamps, engine }),
    sampling,
    ...(play && { play }),
  };
  await takeAll(startLamps({ folder, setup, ...options }));
  expect(await stored()).toEqual(folder.manifest);
  return folder.manifest.found;
}

/** An engine with logprobs after its sampling, unless `describe` says otherwise: all 0 for greedy sampling. */
function certainEngine(
  describe: Engine["describe"] = async () => ({ kind: "c", logprobConvention: "processed" }),
): Engine {
  const inner = switchingEngine();
  return {
    ...inner,
    describe,
    async generate(request, options) {
      const generation = await inner.generate(request, options);
      return { ...generation, logprobs: generation.outputIds.map(() => 0) };
    },
  };
}

test("sampling is recorded at the first start, without an engine's own parameters", async () => {
  const sampling = { temperature: 0.6, topP: 0.9, extra: { key: "secret" } };
  const found = await playSampled(sampling);
  expect(found["sampling"]).toEqual({ temperature: 0.6, topP: 0.9 });
  expect(found).not.toHaveProperty("logprobConvention");
  // As with everything that was found, a later start leaves it.
  expect(await playSampled({ temperature: 0.7 })).toEqual(found);
});

test("a start does not describe the sampling of an earlier one, nor parameters that extra may replace", async () => {
  await play(own);
  const { sampling: _sampling, ...found } = (await stored()).found;
  await writeFile(path.join(dir, "run.json"), JSON.stringify({ ...(await stored()), found }));
  expect(await playSampled({ temperature: 0.9 })).toEqual(found);
  await rm(dir, { recursive: true });
  const replaced = await playSampled({ temperature: 0.9, extra: { temperature: 0.7 } });
  expect(replaced).not.toHaveProperty("sampling");
});

test("a start does not describe the sampling of attempts that an earlier one only started", async () => {
  const stop = new AbortController();
  const engine = switchingEngine(async (_request, turn) => {
    if (turn === 0) return;
    stop.abort();
    await new Promise(() => {});
  });
  {
    await using folder = await RunFolder.open(dir, own, { retryFailed: false });
    await takeAll(startLamps({ folder, engine, signal: stop.signal }));
    expect(folder.finished).toEqual([]);
  }
  const { sampling: _sampling, ...found } = (await stored()).found;
  await writeFile(path.join(dir, "run.json"), JSON.stringify({ ...(await stored()), found }));
  expect(await playSampled({ temperature: 0.9 })).toEqual(found);
});

test.each<[string, () => [Engine, Partial<StartRunOptions>]]>([
  [
    "was stopped before anything was sampled",
    () => {
      const stop = new AbortController();
      const engine = switchingEngine(async () => {
        stop.abort();
        return await new Promise(() => {});
      });
      return [engine, { signal: stop.signal }];
    },
  ],
  [
    "failed before anything was sampled",
    () => [switchingEngine(() => new Error("no model")), { grouping: { size: 2, attempts: 1 } }],
  ],
  [
    "failed when it had sampled, and is played again",
    () => [
      switchingEngine((_request, turn) => (turn === 0 ? undefined : new Error("no model"))),
      { grouping: { size: 2, attempts: 1 } },
    ],
  ],
])("sampling is recorded again after a start that %s", async (_, begin) => {
  const [engine, options] = begin();
  const first = await playSampled({ temperature: 0.6 }, { engine, ...options });
  expect(first["sampling"]).toEqual({ temperature: 0.6 });
  const found = await playSampled({ temperature: 0.9 }, { retryFailed: true });
  expect(found["sampling"]).toEqual({ temperature: 0.9 });
  // From now on it stays.
  expect(await playSampled({ temperature: 0.7 })).toEqual(found);
});

/** A start with an engine that is asked and never samples. */
async function stopUnsampled(
  sampling: StartRunOptions["setup"]["sampling"],
  { describe, ...options }: Parameters<typeof playSampled>[1] & Partial<Engine> = {},
): Promise<RunManifest["found"]> {
  const stop = new AbortController();
  const inner = switchingEngine(async () => {
    stop.abort();
    return await new Promise(() => {});
  });
  const engine = { ...inner, ...(describe && { describe }) };
  return await playSampled(sampling, { ...options, engine, signal: stop.signal });
}

const cooler: AttemptPlayer = {
  play: async (assignment, setup, options) =>
    await playHere.play(assignment, { ...setup, sampling: { temperature: 0.3 } }, options),
};
const playCooler: PlayAttempt = async (assignment, { play: _own, ...setup }, options) =>
  await playEpisode(assignment, { ...setup, sampling: { temperature: 0.3 } }, options);

test.each<[string, Parameters<typeof playSampled>]>([
  ["with a player", [{}, { player: cooler }]],
  ["with a play of its own", [{}, { play: playCooler }]],
  ["at an extra's temperature", [{ extra: { temperature: 0.3 } }]],
])(
  "facts of a start without samples are removed if the next samples %s",
  async (_, [sampling, how]) => {
    const found = { plan: { isOpen: true }, vocabularySize };
    expect(await stopUnsampled({ temperature: 0.6 })).toEqual({
      ...found,
      sampling: { temperature: 0.6 },
    });
    expect(await playSampled(sampling, how)).toEqual(found);
    await rm(dir, { recursive: true });
    // The program that opens the folder may set it.
    const own = { sampling: { temperature: 0.3 } };
    await stopUnsampled({ temperature: 0.6 }, { found: own });
    expect(await playSampled(sampling, { ...how, found: own })).toEqual({ ...found, ...own });
  },
);

test("an engine's logprob convention is asked for again if nothing was sampled", async () => {
  const first = await stopUnsampled(
    { temperature: 0 },
    { describe: async () => ({ kind: "c", logprobConvention: "processed" }) },
  );
  expect(first["logprobConvention"]).toBe("processed");
  const other = certainEngine(async () => ({ kind: "d", logprobConvention: "raw" }));
  const found = await playSampled({ temperature: 0 }, { engine: other });
  expect(found["logprobConvention"]).toBe("raw");
  const { violations } = await verifyRun(dir);
  expect(violations[0]?.detail).toContain("they were not reported");
});

test("shared turns of a fork were sampled by no start of its folder", async () => {
  await play(own);
  let recorded: RecordedAttempt;
  {
    await using folder = await RunFolder.open(dir, own, { retryFailed: false });
    recorded = (await folder.recordings.read("lamp/test/0#0"))!;
  }
  await rm(dir, { recursive: true });
  const source: TaskSource = {
    repeatable: true,
    length: 1,
    at: () => ({
      task: fiftyLamps.task("test", 0),
      groupId: "fork",
      fork: {
        place: { rolloutId: "lamp/test/0#0", turnIndex: 1 },
        inputs: inputsBefore(recorded.inputs, 1)!,
        seed: recorded.begin.seed,
      },
    }),
  };
  const first = await stopUnsampled({ temperature: 0.6 }, { source });
  expect(first["sampling"]).toEqual({ temperature: 0.6 });
  const grouping = { size: 2, attempts: 1 };
  const failing = switchingEngine(() => new Error("no model"));
  const second = await playSampled({ temperature: 0.7 }, { source, grouping, engine: failing });
  expect(second["sampling"]).toEqual({ temperature: 0.7 });
  const third = await playSampled({ temperature: 0.9 }, { source, retryFailed: true });
  expect(third["sampling"]).toEqual({ temperature: 0.9 });
  expect(await playSampled({ temperature: 1 }, { source })).toEqual(third);
  expect(await verifyRun(dir)).toMatchObject({ episodes: 2, violations: [] });
});

test("failed attempts without samples next to sampled started ones are not a fresh start", async () => {
  const stop = new AbortController();
  const engine = switchingEngine(async ({ sessionId }, turn) => {
    if (sessionId.startsWith("lamp/test/0#0")) return new Error("no model");
    if (turn === 0) return undefined;
    stop.abort();
    return await new Promise(() => {});
  });
  const about = { grouping: { size: 2, attempts: 1 }, admission: { concurrency: 1 } };
  const first = await playSampled({ temperature: 0.6 }, { engine, signal: stop.signal, ...about });
  const finished = await readFile(path.join(dir, "episodes.jsonl"), "utf8");
  expect(finished.trim().split("\n")).toHaveLength(1);
  expect(await playSampled({ temperature: 0.9 })).toEqual(first);
  expect(first["sampling"]).toEqual({ temperature: 0.6 });
});

test("sampling is not recorded if a player plays the attempts", async () => {
  const player: AttemptPlayer = {
    play: async (assignment, setup, options) =>
      await playHere.play(assignment, { ...setup, sampling: { temperature: 0.3 } }, options),
  };
  const found = { plan: { isOpen: true }, vocabularySize };
  expect(await playSampled({ temperature: 0 }, { player })).toEqual(found);
  await rm(dir, { recursive: true });
  const play: PlayAttempt = async (assignment, { play: _own, ...setup }, options) =>
    await playEpisode(assignment, setup, options);
  expect(await playSampled({ temperature: 0 }, { play })).toEqual(found);
});

test("the command line's settings describe sampling while the setup agrees", async () => {
  const settings = { temperature: 0.6, "top-k": 7 };
  const found = await playSampled({ temperature: 0.6, topK: 7 }, { found: { settings } });
  expect(found).toEqual({ settings, plan: { isOpen: true }, vocabularySize });
  expect(storedSettings({ ...own, found })).toEqual(settings);
  await rm(dir, { recursive: true });
  const other = await playSampled({ temperature: 0.3 }, { found: { settings } });
  expect(other).toEqual({ ...found, sampling: { temperature: 0.3 } });
  expect(storedSettings({ ...own, found: other })).toEqual({ temperature: 0.3 });
});

test.each<[string, object]>([
  ["temperature 0", { temperature: 0 }],
  ["the likeliest token alone", { temperature: 0.6, topK: 1 }],
])("a run that was sampled at %s is sound if its logprobs are all 0", async (_, sampling) => {
  const found = await playSampled(sampling, { engine: certainEngine() });
  expect(found).toMatchObject({ sampling, logprobConvention: "processed" });
  expect(await verifyRun(dir)).toMatchObject({ isFinished: true, episodes: 6, violations: [] });
});

test.each<[string, Engine["describe"], object]>([
  ["does not say", async () => await Promise.reject(new Error("down")), {}],
  ["says no sound thing", async () => ({ kind: "c" }), {}],
  [
    "reports others",
    async () => ({ kind: "c", logprobConvention: "tempered" }),
    { logprobConvention: "tempered" },
  ],
])("logprobs that are all 0 are found if the engine %s", async (_, describe, more) => {
  const found = await playSampled({ temperature: 0 }, { engine: certainEngine(describe) });
  expect(found).toEqual({
    plan: { isOpen: true },
    vocabularySize,
    sampling: { temperature: 0 },
    ...more,
  });
  const { violations } = await verifyRun(dir);
  expect(violations[0]?.detail).toContain("they were not reported");
});

test("an engine that never describes itself does not prevent an interruption", async () => {
  await using folder = await RunFolder.open(dir, own, { retryFailed: false });
  const asked = withResolvers();
  const engine = certainEngine(async () => {
    asked.resolve();
    return await new Promise(() => {});
  });
  const setup = {
    ...lampSetup({ environment: fiftyLamps, engine }),
    sampling: { temperature: 0 },
  };
  const run = startLamps({ folder, setup });
  await asked.promise;
  expect((await run.interrupt()).end).toBe("interrupted");
  expect((await stored()).found).toMatchObject({ sampling: { temperature: 0 } });
});
