import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import type { Engine } from "../../engine/engine.ts";
import { UsageError } from "../../errors.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { startRun } from "../../run/start-run.ts";
import { HandOut } from "../hand-out/hand-out.ts";
import { lampEngine, lampSource, longLampSetup, textsIn, until } from "../queue.fixture.ts";
import {
  acknowledgedKey,
  newsChannel,
  policyKey,
  runAliveKey,
  runsKey,
  workerAliveKey,
} from "../store/keys.ts";
import { openSharedFolder } from "../place/shared-folder.ts";
import { faultyClients, plainLine, type StoreLine } from "../local/faulty-connection.fixture.ts";
import { FaultyStore } from "../local/faulty-connection.fixture.ts";
import { QueueStore } from "../store/queue-store.ts";
import { QueueWorker, type QueueWorkerOptions } from "./queue-worker.ts";

const terms = { tokenizer: "t1" };

async function connect(memory: FaultyStore, line: Partial<StoreLine> = {}): Promise<QueueStore> {
  const clients = faultyClients({ ...plainLine(memory), ...line });
  return await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
}

async function startWorker(
  memory: FaultyStore,
  onNote: (text: string) => void = () => {},
  {
    line,
    engine,
    ...options
  }: Pick<Partial<QueueWorkerOptions>, "leaseMs" | "place"> & {
    readonly line?: Partial<StoreLine>;
    readonly engine?: Engine;
  } = {},
): Promise<QueueWorker> {
  const store = await connect(memory, line);
  const about = {
    store,
    setup: longLampSetup(engine),
    terms,
    redactor: new Redactor(),
    concurrency: 1,
  };
  return await QueueWorker.start({ ...about, onNote: ({ text }) => onNote(text), ...options });
}

test("reports that the store accepts no writes, before the hand-out counts on it", async () => {
  const memory = new FaultyStore(() => 0);
  memory.refusesUntilMs = 1;
  const refused = startWorker(memory);
  await expect(refused).rejects.toThrow(UsageError);
  await expect(refused).rejects.toThrow(
    /^Cannot work for the queue's store, which takes nothing now: .*; start again when it does$/,
  );
});

test("leaves all of its runs even while the store accepts no writes", async () => {
  const memory = new FaultyStore(() => 0);
  const handOuts: HandOut[] = [];
  for (const run of ["one", "two"]) {
    const about = { run, environment: "lamp", terms, isRecorded: true, sampling: {} };
    handOuts.push(await HandOut.open({ ...about, store: await connect(memory) }));
  }
  const notes: string[] = [];
  const worker = await startWorker(memory, (text) => notes.push(text));
  expect(notes.map((note) => note.split(" ").slice(0, 3).join(" ")).toSorted()).toEqual([
    "joins run one",
    "joins run two",
  ]);
  memory.refusesUntilMs = 1;
  expect(await worker[Symbol.asyncDispose]()).toBe(undefined);
  memory.refusesUntilMs = 0;
  for (const handOut of handOuts) await handOut[Symbol.asyncDispose]();
});

test("says that it has left a run as soon as the store takes that, and is waited for no longer", async () => {
  const memory = new FaultyStore(() => 0);
  const about = { run: "one", environment: "lamp", isRecorded: true, sampling: {} };
  const first = await HandOut.open({ ...about, terms, store: await connect(memory) });
  const notes: string[] = [];
  const worker = await startWorker(memory, (text) => notes.push(text), { leaseMs: 60 });
  const store = await connect(memory);
  const joined = async (): Promise<number> =>
    Object.keys(await store.redis.hgetall(acknowledgedKey("one"))).length;
  expect(await joined()).toBe(1);
  memory.refusesUntilMs = 1;
  memory.hdel(runsKey, "one");
  memory.publish(newsChannel, JSON.stringify({ type: "run", run: "one" }));
  await until(() => notes.includes("leaves run one"));
  expect(await joined()).toBe(1);
  memory.refusesUntilMs = 0;
  await first[Symbol.asyncDispose]();
  // It does not join one of other terms.
  const second = await HandOut.open({
    ...about,
    terms: { tokenizer: "t2" },
    store: await connect(memory),
  });
  await second.policy.close("interrupt");
  expect(await joined()).toBe(0);
  await worker[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

/** Plays one lamp twice through the hand-out. */
async function playLamp(handOut: HandOut): Promise<readonly (number | undefined)[]> {
  const run = startRun({
    source: lampSource(1),
    setup: longLampSetup(),
    player: handOut.player(),
    grouping: { size: 2 },
    admission: { concurrency: 2 },
    signal: new AbortController().signal,
  });
  const rewards: (number | undefined)[] = [];
  for await (const { episodes } of run) rewards.push(...episodes.map(({ reward }) => reward));
  return rewards;
}

const lamp = { environment: "lamp", terms, isRecorded: true, sampling: {} };

test("plays a job of a run that it is leaving, and joins the run again", async () => {
  const memory = new FaultyStore(() => 0);
  const store = await connect(memory);
  const handOut = await HandOut.open({ ...lamp, run: "one", store, everyMs: 200 });
  let delayMs = 0;
  let askedCount = 0;
  const line = { delayMs: () => delayMs, note: () => void (askedCount += 1) };
  const worker = await startWorker(memory, () => {}, { line, leaseMs: 3000 });
  // It asks which runs there are, and then which of them are handed out: this one is not just now.
  [delayMs, askedCount] = [50, 0];
  memory.del(runAliveKey("one"));
  memory.publish(newsChannel, JSON.stringify({ type: "run", run: "one" }));
  await until(() => askedCount === 2);
  setTimeout(() => (delayMs = 0), 500);
  // It asks for a job before it has received that message, and gets one after it.
  expect(await playLamp(handOut)).toEqual([1, 1]);
  await until(async () => (await store.redis.hexists(acknowledgedKey("one"), worker.name)) === 1);
  await worker[Symbol.asyncDispose]();
  await handOut[Symbol.asyncDispose]();
});

test("discards a turn if the store forgot the attempt, because no process waits for it", async () => {
  const memory = new FaultyStore(() => 0);
  const shared = await mkdtemp(path.join(tmpdir(), "turnwright-worker-"));
  try {
    const place = await openSharedFolder(shared);
    const store = await connect(memory);
    const handOut = await HandOut.open({ ...lamp, run: "one", store, place, everyMs: 20 });
    const recorded: string[] = [];
    const asked: string[] = [];
    let isLost = false;
    const engine = lampEngine(async ({ sessionId }, turn) => {
      asked.push(`${sessionId} ${turn}`);
      if (turn === 0 && !isLost) {
        isLost = true;
        memory.clear();
        // The hand-out has its new weights: no worker is known to sample.
        await handOut.policy.close("hold");
        handOut.policy.open();
      } else if (asked.length === 2) {
        // The turn sampled before is about to be written.
        await new Promise((resolve) => setTimeout(resolve, 200));
        recorded.push(...(await textsIn(path.join(shared, "recordings"))));
      }
    });
    const notes: string[] = [];
    const worker = await startWorker(memory, (text) => notes.push(text), { engine, place });
    expect(await playLamp(handOut)).toEqual([1, 1]);
    // Both of its turns again. The worker may have noticed the loss before its second turn.
    const turns = asked.filter((turn) => turn.startsWith("lamp/test/0#0"));
    expect(turns.slice(0, -2)[0]).toBe("lamp/test/0#0 0");
    expect(turns.slice(-2)).toEqual(["lamp/test/0#0 0", "lamp/test/0#0 1"]);
    expect(recorded.join("")).toBe("");
    expect(notes).toContain(
      "is no longer known to the queue's store: its attempts are dropped, and it joins its runs again",
    );
    await worker[Symbol.asyncDispose]();
    await handOut[Symbol.asyncDispose]();
  } finally {
    await rm(shared, { recursive: true });
  }
});

/** A worker of a run with slow turns, and the tokens that it sampled while the weights changed. */
async function watchWorker(
  memory: FaultyStore,
  {
    handOutLine,
    ...options
  }: NonNullable<Parameters<typeof startWorker>[2]> & {
    readonly handOutLine?: Partial<StoreLine>;
  },
) {
  const store = await connect(memory, handOutLine);
  const handOut = await HandOut.open({ ...lamp, run: "one", store, everyMs: 200 });
  const mixed: string[] = [];
  const found = { changes: 0, isChanging: false, sampling: 0, turns: 0, heldTurn: -1 };
  const engine = lampEngine(async ({ sessionId }, turn) => {
    const { changes, isChanging } = found;
    found.sampling += 1;
    do await new Promise((resolve) => setTimeout(resolve, 30));
    while (found.heldTurn === turn);
    found.sampling -= 1;
    found.turns += 1;
    if (isChanging || changes !== found.changes) mixed.push(`${sessionId} ${turn}`);
  });
  const notes: string[] = [];
  const worker = await startWorker(memory, (text) => notes.push(text), { ...options, engine });
  /** The weights start to change as soon as the hand-out knows of no sampling worker. */
  const beginChange = async (): Promise<void> => {
    await handOut.policy.close("hold");
    found.changes += 1;
    found.isChanging = true;
  };
  const endChange = (): void => {
    found.isChanging = false;
    handOut.policy.open();
  };
  return {
    beginChange,
    endChange,
    found,
    handOut,
    mixed,
    notes,
    worker,
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await handOut[Symbol.asyncDispose]();
    },
  };
}

const forgotten = /^is no longer known to the queue's store/;

test("answers no job of a store that had just lost all data, including the worker", async () => {
  const memory = new FaultyStore(() => performance.now());
  let areNewsLost = false;
  const line = { newsDelayMs: () => (areNewsLost ? undefined : 0), delayMs: () => 1 };
  // The worker receives no messages and sends no heartbeat for long, so only the store's answers
  // show the loss.
  await using watched = await watchWorker(memory, { line, leaseMs: 30_000 });
  const { beginChange, endChange, found, handOut, mixed, notes } = watched;
  // After all fields that describe an attempt.
  const addJobs = memory.addJobs.bind(memory);
  memory.addJobs = (...about) => {
    memory.addJobs = addJobs;
    memory.clear();
    addJobs(...about);
  };
  areNewsLost = true;
  found.heldTurn = 1;
  const played = playLamp(handOut);
  // The last turn of the first attempt is being sampled.
  await until(() => found.turns === 1 && found.sampling === 1);
  await beginChange();
  endChange();
  found.heldTurn = -1;
  expect(await played).toEqual([1, 1]);
  expect(mixed).toHaveLength(1);
  expect(notes.filter((note) => forgotten.test(note))).not.toHaveLength(0);
  // Both turns of that attempt were sampled again, and those of the other one.
  expect(found.turns).toBe(6);
});

test("discards an attempt if its heartbeat expired before the next one", async () => {
  const memory = new FaultyStore(() => performance.now());
  const store = await connect(memory);
  const handOut = await HandOut.open({ ...lamp, run: "one", store, everyMs: 200 });
  const signals: AbortSignal[] = [];
  const engine: Engine = {
    ...lampEngine(),
    async generate(request, options) {
      const signal = options!.signal!;
      signals.push(signal);
      if (signals.length === 1) await once(signal, "abort");
      return await lampEngine().generate(request, options);
    },
  };
  const notes: string[] = [];
  const worker = await startWorker(memory, (note) => notes.push(note), { engine, leaseMs: 1500 });
  const played = playLamp(handOut);
  await until(() => signals.length === 1);
  // As after a while in which its process stood still.
  memory.del(workerAliveKey(worker.name));
  expect(await played).toEqual([1, 1]);
  expect(signals[0]!.aborted).toBe(true);
  expect(notes.filter((note) => forgotten.test(note))).not.toHaveLength(0);
  await worker[Symbol.asyncDispose]();
  await handOut[Symbol.asyncDispose]();
});

test("samples nothing while the store has lost its permission to sample", async () => {
  const memory = new FaultyStore(() => performance.now());
  let areNewsLost = true;
  let isLost = false;
  const line = { newsDelayMs: () => (areNewsLost ? undefined : 0) };
  // Between the hand-out's write and its question.
  const note = (): void => {
    if (isLost || memory.get(policyKey("one"))?.includes('"hold"') !== true) return;
    isLost = true;
    memory.clear();
  };
  await using watched = await watchWorker(memory, { line, leaseMs: 3000, handOutLine: { note } });
  const { beginChange, endChange, handOut, mixed } = watched;
  await beginChange();
  expect(isLost).toBe(true);
  areNewsLost = false;
  const played = playLamp(handOut);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  endChange();
  expect(await played).toEqual([1, 1]);
  expect(mixed).toEqual([]);
});

test("finds no run that is handed out again without its policy", async () => {
  const memory = new FaultyStore(() => performance.now());
  let delayMs = 0;
  const handOutLine = { delayMs: () => delayMs };
  await using watched = await watchWorker(memory, { leaseMs: 1500, handOutLine });
  const { beginChange, endChange, handOut, mixed } = watched;
  await beginChange();
  memory.clear();
  delayMs = 60;
  const played = playLamp(handOut);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  delayMs = 0;
  endChange();
  expect(await played).toEqual([1, 1]);
  expect(mixed).toEqual([]);
});

test("continues after a store that accepts no writes while it takes an attempt", async () => {
  const memory = new FaultyStore(() => performance.now());
  let areNewsLost = false;
  const line = { newsDelayMs: () => (areNewsLost ? undefined : 0), delayMs: () => 3 };
  await using watched = await watchWorker(memory, { line, leaseMs: 1500 });
  const { handOut, worker } = watched;
  const failed = withResolvers<unknown>();
  worker.failed.catch(failed.resolve);
  // The news of the version are lost: it looks that up for the attempt.
  areNewsLost = true;
  handOut.policy.announce(2);
  await handOut.policy.written();
  areNewsLost = false;
  const takeJob = memory.takeJob.bind(memory);
  memory.takeJob = (...about) => {
    const job = takeJob(...about);
    if (job !== undefined) {
      memory.refusesUntilMs = performance.now() + 100;
      memory.takeJob = takeJob;
    }
    return job;
  };
  expect(await Promise.race([playLamp(handOut), failed.promise])).toEqual([1, 1]);
});
