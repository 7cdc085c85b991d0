import { expect, test } from "vitest";
import type { Engine } from "../../engine/engine.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { lamps } from "../../run/lamp-run.fixture.ts";
import { startRun } from "../../run/start-run.ts";
import { createTaskList } from "../../run/schedule/task-source.ts";
import { HandOut } from "../hand-out/hand-out.ts";
import { lampEngine, longLampSetup, until } from "../queue.fixture.ts";
import { readRuns } from "../run/run-entry.ts";
import { workerAliveKey } from "../store/keys.ts";
import { faultyClients, plainLine } from "../local/faulty-connection.fixture.ts";
import { FaultyStore } from "../local/faulty-connection.fixture.ts";
import { QueueStore } from "../store/queue-store.ts";
import { RunLane } from "./run-lane.ts";

test("returns an attempt that it lost and then received again", async () => {
  let nowMs = 0;
  const memory = new FaultyStore(() => nowMs);
  const connect = async () =>
    await QueueStore.connect(
      { url: "redis://memory" },
      { clients: faultyClients(plainLine(memory)), env: {} },
    );
  const about = { run: "r", environment: "lamp", terms: {}, isRecorded: true, sampling: {} };
  const handOut = await HandOut.open({ ...about, store: await connect() });
  const stop = new AbortController();
  const run = startRun({
    source: createTaskList({ ...lamps(1), repeatable: true }, { split: "test", taskIndexes: [0] }),
    setup: longLampSetup(),
    player: handOut.player(),
    grouping: { size: 1 },
    admission: { concurrency: 1 },
    signal: stop.signal,
  });
  const { result } = run;
  const signals: AbortSignal[] = [];
  const never = withResolvers();
  const engine: Engine = {
    ...lampEngine(),
    async generate(_request, options) {
      signals.push(options!.signal!);
      await never.promise;
      throw new Error("no caller waits for this");
    },
  };
  const store = await connect();
  const [entry] = await readRuns(store);
  // As its worker does, which gives signs of life.
  memory.set(workerAliveKey("w"), "1");
  const lane = await RunLane.open({
    store,
    entry: entry!,
    worker: "w",
    setup: longLampSetup(engine),
    place: undefined,
    redactor: new Redactor(),
    leaseMs: 1000,
    lookForLostMs: 10,
    onTrouble: () => {},
    onForgotten: () => {},
  });
  const take = async (passingMs: number): Promise<() => Promise<void>> => {
    for (;;) {
      nowMs += passingMs;
      const play = await lane.take();
      if (play !== undefined) return play;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const first = (await take(0))();
  await until(() => signals.length === 1);
  // The job's lock expires without a renewal.
  const second = (await take(1000))();
  await first;
  await until(() => signals.length === 2);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  expect(lane.playingIds).toHaveLength(1);
  lane.giveBack();
  await second;
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  expect(lane.playingIds).toEqual([]);
  await lane[Symbol.asyncDispose]();
  stop.abort();
  await result;
  await handOut[Symbol.asyncDispose]();
});
