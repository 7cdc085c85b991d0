import { expect, test, vi } from "vitest";
import type { Environment } from "../../environment/environment.ts";
import { UsageError } from "../../errors.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { fiftyLamps, switchingEngine, takeAll } from "../../run/lamp-groups.fixture.ts";
import { lampSetup } from "../../run/lamp-run.fixture.ts";
import { startRun } from "../../run/start-run.ts";
import { createPushedTasks } from "../../run/schedule/pushed-tasks.ts";
import { createTaskList } from "../../run/schedule/task-source.ts";
import type { SharedPlace } from "../place/shared-place.ts";
import { readRuns } from "../run/run-entry.ts";
import { FaultyStore } from "../local/faulty-connection.fixture.ts";
import { faultyClients, plainLine } from "../local/faulty-connection.fixture.ts";
import { policyKey, workerAliveKey } from "../store/keys.ts";
import { QueueStore } from "../store/queue-store.ts";
import { QueueWorker } from "../worker/queue-worker.ts";
import { RunLane } from "../worker/run-lane.ts";
import { HandOut, type HandOutOptions } from "./hand-out.ts";

async function openHandOut(
  memory: FaultyStore,
  options: Partial<HandOutOptions> = {},
): Promise<HandOut> {
  const clients = faultyClients(plainLine(memory));
  const store = await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
  const terms = { tokenizer: "t1" };
  const about = { run: "r", environment: "lamp", terms, sampling: {}, isRecorded: true };
  return await HandOut.open({ store, ...about, ...options });
}

test("reports that the store accepts no writes, before it hands out a job", async () => {
  const memory = new FaultyStore(() => 0);
  memory.refusesUntilMs = 1;
  const refused = openHandOut(memory);
  await expect(refused).rejects.toThrow(UsageError);
  await expect(refused).rejects.toThrow(
    /^Cannot hand out by the queue's store, which takes nothing now: MISCONF .*; start again when it does$/,
  );
});

test("names the shared place that cannot be written", async () => {
  const place = {
    shown: "/shared",
    write: async () => {
      await Promise.reject(Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" }));
    },
    read: async () => await Promise.resolve(undefined),
    remove: async () => {},
  };
  const refused = openHandOut(new FaultyStore(() => 0), { place });
  await expect(refused).rejects.toThrow(UsageError);
  await expect(refused).rejects.toThrow(/^Cannot use --shared \/shared: ENOSPC: no space left/);
});

/**
 * Plays a task under the name of the lamp that has 40 watts at a worker; returns the tasks that its
 * worlds were opened for.
 */
async function playPushed(data: unknown, place?: SharedPlace): Promise<readonly unknown[]> {
  const opened: unknown[] = [];
  const environment: Environment = {
    ...fiftyLamps,
    task: (split, index) => ({ ...fiftyLamps.task(split, index), data: { watts: 40 } }),
    open: async (task, options) => {
      opened.push(task.data);
      return await fiftyLamps.open(task, options);
    },
  };
  const memory = new FaultyStore(() => Date.now());
  const setup = lampSetup({ environment, engine: switchingEngine() });
  const clients = faultyClients(plainLine(memory));
  await using worker = await QueueWorker.start({
    store: await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} }),
    setup,
    terms: { tokenizer: "t1" },
    redactor: new Redactor(),
    concurrency: 2,
    // A slow machine must not count as a lost worker.
    leaseMs: 600_000,
    ...(place && { place }),
  });
  await using handOut = await openHandOut(memory, { everyMs: 100, ...(place && { place }) });
  const source = createPushedTasks();
  source.push({ task: { ...environment.task("test", 3), data }, groupId: "pushed" });
  source.end();
  const admission = { concurrency: 2 };
  const grouping = { size: 2 };
  const player = handOut.player();
  const [group] = await takeAll(startRun({ source, setup, grouping, admission, player }));
  expect(group!.episodes.map(({ reward }) => reward)).toEqual([1, 1]);
  expect(worker).toBeDefined();
  return opened;
}

test.each([[{ watts: 40 }], [{ watts: 100 }]])(
  "workers play the task that was given: %o",
  async (data) => {
    expect(await playPushed(data)).toEqual([data, data]);
  },
);

test("a large custom task travels through the shared place, once for all of its attempts", async () => {
  const files = new Map<string, Buffer>();
  const place: SharedPlace = {
    shown: "/shared",
    write: async (name, bytes) => void files.set(name, bytes),
    read: async (name) => files.get(name),
    remove: async (name) => void files.delete(name),
  };
  const data = { watts: 100, manual: "Turn it. ".repeat(20_000) };
  expect(await playPushed(data, place)).toEqual([data, data]);
  const tasks = [...files.keys()].filter((name) => name.startsWith("tasks/r/task."));
  expect(tasks.length).toBe(1);
});

test("a task that cannot travel is not handed out", async () => {
  await expect(playPushed({ watts: 40, rooms: new Map() })).rejects.toThrow(
    /^Cannot hand out pushed#\d: lamp draws another task in the place of its own, which cannot travel to workers: it has what JSON cannot say/,
  );
});

test("a job is handed out after every earlier policy announcement, however slow the store is", async () => {
  const memory = new FaultyStore(() => Date.now());
  const clients = faultyClients(plainLine(memory));
  const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
  await using _worker = await QueueWorker.start({
    store: await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} }),
    setup,
    terms: { tokenizer: "t1" },
    redactor: new Redactor(),
    concurrency: 2,
    leaseMs: 600_000,
  });
  const store = await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
  await using handOut = await openHandOut(memory, { store, everyMs: 100, isMarked: true });
  const held = withResolvers();
  const set = store.redis.set.bind(store.redis);
  vi.spyOn(store.redis, "set").mockImplementation((async (key: string, ...rest: [string]) => {
    if (key === policyKey("r")) await held.promise;
    return await set(key, ...rest);
  }) as typeof set);
  const run = startRun({
    source: createTaskList(fiftyLamps, { split: "test", taskIndexes: [3] }),
    setup,
    grouping: { size: 2 },
    admission: { concurrency: 2 },
    player: handOut.player(),
  });
  run.announcePolicy(6);
  const groups = takeAll(run);
  // Long enough for a worker that would take it.
  for (let round = 0; round < 200; round++) await new Promise((resolve) => setImmediate(resolve));
  held.resolve();
  const [group] = await groups;
  const sampled = group!.episodes.flatMap(({ segments }) =>
    segments.flatMap(({ policyVersions, lossMask }) =>
      policyVersions.filter((_, at) => lossMask[at] === 1),
    ),
  );
  expect([...new Set(sampled)]).toEqual(["6"]);
});

test("an interruption while the store accepts an announcement leaves no job handed out", async () => {
  const memory = new FaultyStore(() => Date.now());
  const clients = faultyClients(plainLine(memory));
  const store = await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
  await using handOut = await openHandOut(memory, { store, everyMs: 100 });
  const asked = withResolvers();
  const held = withResolvers();
  const set = store.redis.set.bind(store.redis);
  vi.spyOn(store.redis, "set").mockImplementation((async (key: string, ...rest: [string]) => {
    if (key === policyKey("r")) {
      asked.resolve();
      await held.promise;
    }
    return await set(key, ...rest);
  }) as typeof set);
  const run = startRun({
    source: createTaskList(fiftyLamps, { split: "test", taskIndexes: [3] }),
    setup: lampSetup({ environment: fiftyLamps, engine: switchingEngine() }),
    grouping: { size: 1 },
    admission: { concurrency: 1 },
    player: handOut.player(),
  });
  run.announcePolicy(6);
  await asked.promise;
  // At this time the attempt waits for the announcement.
  for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
  const result = run.interrupt();
  held.resolve();
  expect((await result).end).toBe("interrupted");
});

test("a start that resumes a forgotten run waits for workers that have not seen its end yet", async () => {
  const memory = new FaultyStore(() => 0);
  const first = await openHandOut(memory);
  const clients = faultyClients(plainLine(memory));
  const store = await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
  const [entry] = await readRuns(store);
  const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
  // As its worker does, which gives signs of life.
  memory.set(workerAliveKey("w"), "1");
  const lane = await RunLane.open({
    store,
    entry: entry!,
    worker: "w",
    setup,
    place: undefined,
    redactor: new Redactor(),
    leaseMs: 600_000,
    lookForLostMs: 600_000,
    onTrouble: () => {},
    onForgotten: () => {},
  });
  await first[Symbol.asyncDispose]();
  expect(await readRuns(store)).toEqual([]);
  const second = await openHandOut(memory);
  const order: string[] = [];
  const closed = second.policy.close("interrupt").then(() => order.push("closed"));
  for (let round = 0; round < 20; round++) await new Promise(setImmediate);
  order.push("followed");
  await lane.follow();
  await closed;
  expect(order).toEqual(["followed", "closed"]);
  await lane[Symbol.asyncDispose]();
  // The hand-out does not wait for workers that have left.
  await second.policy.close("interrupt");
  await second[Symbol.asyncDispose]();
});
