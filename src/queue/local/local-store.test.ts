import type { Queue, Worker } from "bullmq";
import { systemClock } from "../../async/clock.ts";
import type { ToWorker } from "./channel-message.ts";
import { connectHere, type StoreCommand } from "./store-connection.ts";
import { describe, expect, test } from "vitest";
import { holdKey, leaveKey } from "../store/held-key.ts";
import { faultyClients, plainLine } from "./faulty-connection.fixture.ts";
import { workerAliveKey } from "../store/keys.ts";
import { takeOutDead } from "../store/take-out-dead.ts";
import { FaultyStore } from "./faulty-connection.fixture.ts";
import { localClients } from "./local-clients.ts";
import { ServedStore } from "./serve-store.ts";
import { StoreChannel } from "./store-channel.ts";
import { QueueStore } from "../store/queue-store.ts";
import { missingStore, startStore } from "../store/store-server.fixture.ts";

/** A store, and a function that advances its time. */
interface Opened extends AsyncDisposable {
  readonly store: QueueStore;
  /** Lets locks of one millisecond, and the time between two checks, come to their end. */
  pass(): Promise<void>;
}

async function openReal(): Promise<Opened> {
  const server = await startStore();
  const store = await QueueStore.connect({ url: server.url });
  return {
    store,
    pass: async () => await new Promise((resolve) => setTimeout(resolve, 30)),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function openMemory(): Promise<Opened> {
  let nowMs = 0;
  const memory = new FaultyStore(() => nowMs);
  const clients = faultyClients(plainLine(memory));
  const store = await QueueStore.connect({ url: "redis://memory" }, { clients });
  return {
    store,
    pass: async () => {
      nowMs += 30;
      await Promise.resolve();
    },
    [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
  };
}

/** The store as a worker's process reaches it. */
async function openChannel(): Promise<Opened> {
  let nowMs = 0;
  const memory = new FaultyStore(() => nowMs);
  const copy = <Message>(message: Message): Message =>
    JSON.parse(JSON.stringify(message)) as Message;
  const channel = new StoreChannel((message) => {
    if (message.type === "commands") queueMicrotask(() => served.receive(copy(message)));
  });
  const served = new ServedStore(memory, (message) => {
    queueMicrotask(() => channel.receive(copy(message)));
  });
  const store = await QueueStore.over(localClients(() => channel.connect()));
  return {
    store,
    pass: async () => {
      nowMs += 30;
      await Promise.resolve();
    },
    [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
  };
}

const kinds = [
  ["a real store", openReal, missingStore !== undefined],
  ["the store in memory", openMemory, false],
  ["the store in the memory of another process", openChannel, false],
] as const;

/** The result of a promise, or the code of its error. */
async function outcome(work: Promise<unknown>): Promise<unknown> {
  return await work.catch((error: unknown) => {
    const { code, message } = error as { readonly code?: number; readonly message: string };
    return `thrown: ${String(code ?? message)}`;
  });
}

async function openQueue({ store }: Opened): Promise<{ queue: Queue; worker: Worker }> {
  const queue = new store.bullmq.Queue("run-r", store.bullOptions);
  const worker = new store.bullmq.Worker("run-r", null, {
    ...store.bullOptions,
    autorun: false,
    lockDuration: 60_000,
    stalledInterval: 1,
    maxStalledCount: 1_000_000,
  });
  await queue.waitUntilReady();
  await worker.waitUntilReady();
  return { queue, worker };
}

const job = (jobId: string, priority: number, data: object = {}) => ({
  name: "attempt",
  data,
  opts: { jobId, priority, removeOnComplete: false, removeOnFail: false, stackTraceLimit: 0 },
});

const dealWith = { block: false };

describe.each(kinds)("%s", (_name, open, isMissing) => {
  test.skipIf(isMissing)("keeps texts, hashes and sets", async () => {
    await using opened = await open();
    const { redis } = opened.store;
    await redis.set("a", "1", "PX", 60_000);
    await redis.hset("h", "f", "x");
    await redis.hset("h", "g", "y");
    await redis.multi().sadd("s", "m", "n").expire("s", 100).exec();
    const renewed = await redis
      .multi()
      .set("a", "1", "PX", 60_000, "XX")
      .set("b", "1", "PX", 60_000, "XX")
      .exists("a")
      .exists("b")
      .exec();
    const pipeline = redis.pipeline();
    pipeline.hmget("h", "f", "none");
    expect({
      renewed,
      there: [await redis.exists("a"), await redis.exists("b")],
      get: await redis.get("a"),
      gone: await redis.get("b"),
      mget: await redis.mget(["a", "b"]),
      all: await redis.hgetall("h"),
      none: await redis.hgetall("i"),
      members: await redis.smismember("s", "m", "o"),
      piped: await pipeline.exec(),
      removed: [
        await redis.srem("s", "m", "o"),
        await redis.hdel("h", "f"),
        await redis.del("a", "q"),
      ],
      left: [await redis.hexists("h", "f"), await redis.hexists("h", "g"), await redis.get("a")],
    }).toEqual({
      renewed: ["OK", null, 1, 0].map((answer) => [null, answer]),
      there: [1, 0],
      get: "1",
      gone: null,
      mget: ["1", null],
      all: { f: "x", g: "y" },
      none: {},
      members: [1, 0],
      piped: [[null, ["x", null]]],
      removed: [1, 1, 1],
      left: [0, 1, null],
    });
  });

  test.skipIf(isMissing)("has a key held by one, until that leaves it or it ends", async () => {
    await using opened = await open();
    const { redis } = opened.store;
    const hold = async (token: string, livesMs = 60_000) =>
      await holdKey(redis, "k", { token, livesMs });
    expect([await hold("a"), await hold("b"), await hold("a"), await redis.get("k")]).toEqual([
      true,
      false,
      true,
      "a",
    ]);
    expect([await leaveKey(redis, "k", "b"), await redis.get("k")]).toEqual([false, "a"]);
    expect([await leaveKey(redis, "k", "a"), await redis.get("k")]).toEqual([true, null]);
    expect([await leaveKey(redis, "k", "a"), await hold("b", 1)]).toEqual([false, true]);
    await opened.pass();
    expect([await hold("a"), await redis.get("k")]).toEqual([true, "a"]);
  });

  test.skipIf(isMissing)("takes those out of a hash that give no sign of life", async () => {
    await using opened = await open();
    const { redis } = opened.store;
    for (const worker of ["a", "b", "c"]) await redis.hset("h", worker, "1");
    await redis.set(workerAliveKey("b"), "1", "PX", 60_000);
    expect(await takeOutDead(redis, "h", ["a", "b", "none"])).toBe(2);
    expect(await redis.hgetall("h")).toEqual({ b: "1", c: "1" });
    expect(await takeOutDead(redis, "h", [])).toBe(0);
  });

  test.skipIf(isMissing)(
    "gives jobs by their priority, each once, and says who holds them",
    async () => {
      await using opened = await open();
      const { queue, worker } = await openQueue(opened);
      await queue.addBulk([job("a", 2, { n: 1 }), job("b", 2), job("c", 1), job("a", 2, { n: 9 })]);
      const first = await worker.getNextJob("t1", dealWith);
      const second = await worker.getNextJob("t2", dealWith);
      await (await queue.getJob("b"))!.changePriority({ priority: 1 });
      expect([first?.id, second?.id, second?.data, second?.attemptsStarted]).toEqual([
        "c",
        "a",
        { n: 1 },
        1,
      ]);
      expect(await queue.remove("a")).toBe(0);
      expect(await outcome(second.moveToCompleted({}, "other", false))).toBe("thrown: -6");
      await second.moveToWait("t2");
      expect(await outcome(second.moveToWait("t2"))).toBe("thrown: -2");
      const order = [
        await worker.getNextJob("t3", dealWith),
        await worker.getNextJob("t4", dealWith),
      ];
      expect(order.map((taken) => [taken?.id, taken?.attemptsStarted])).toEqual([
        ["b", 1],
        ["a", 2],
      ]);
      expect(await worker.getNextJob("t5", dealWith)).toBeUndefined();
      await order[0]!.moveToCompleted({ done: 1 }, "t3", false);
      expect(await outcome(order[0]!.moveToCompleted({}, "t3", false))).toBe("thrown: -2");
      const { redis } = opened.store;
      const fields = ["name", "returnvalue", "failedReason", "stc"] as const;
      const asked = redis.pipeline();
      asked.hmget(queue.toKey("b"), ...fields);
      expect(await asked.exec()).toEqual([[null, ["attempt", '{"done":1}', null, null]]]);
      expect(await redis.hget(queue.toKey("b"), "finishedOn")).toMatch(/^\d+$/);
      expect([await queue.remove("b"), await queue.remove("never")]).toEqual([1, 1]);
      expect(await outcome(order[0]!.moveToCompleted({}, "t3", false))).toBe("thrown: -1");
      await queue.obliterate({ force: true });
      expect(await redis.hget(queue.toKey("a"), "name")).toBeNull();
      expect(await outcome(order[1]!.moveToCompleted({}, "t4", false))).toBe("thrown: -1");
      await worker.close(true);
      await queue.close();
    },
  );

  test.skipIf(isMissing)("returns jobs with an expired lock before all others", async () => {
    await using opened = await open();
    const { queue, worker } = await openQueue(opened);
    await queue.addBulk([job("a", 1), job("b", 1)]);
    const lost = await worker.getNextJob("t1", dealWith);
    // The lock ends with its next renewal, which is for one millisecond.
    expect(await worker.extendJobLocks(["a"], ["t1"], 1)).toEqual([]);
    await opened.pass();
    expect(await worker.extendJobLocks(["a", "b"], ["t1", "t9"], 60_000)).toEqual(["a", "b"]);
    // Seen twice without a lock.
    for (let round = 0; round < 2; round++) {
      await worker.startStalledCheckTimer();
      await opened.pass();
    }
    const again = await worker.getNextJob("t2", dealWith);
    expect([lost?.id, again?.id, again?.attemptsStarted]).toEqual(["a", "a", 2]);
    expect(await opened.store.redis.hget(queue.toKey("a"), "stc")).toBe("1");
    expect(await outcome(lost.moveToCompleted({}, "t1", false))).toBe("thrown: -6");
    await worker.close(true);
    await queue.close();
  });
});

test("gives the jobs of a worker whose process has ended to others at once", async () => {
  const memory = new FaultyStore(() => 0);
  await using here = await QueueStore.over(localClients(() => connectHere(memory, systemClock)));
  const sent: ToWorker[] = [];
  const served = new ServedStore(memory, (message) => sent.push(message));
  const base = "turnwright:run-r";
  memory.addJobs(base, [job("a", 1), job("b", 1), job("c", 1)]);
  const about = { token: "t", lockMs: 60_000 };
  const take = ["takeJob", base, about] as const;
  served.receive({ type: "commands", id: 1, commands: [take, take] });
  const end = ["completeJob", base, "b", { token: "t", value: {} }] as const;
  served.receive({ type: "commands", id: 2, commands: [end] });
  expect(sent).toMatchObject([
    { type: "answers", id: 1, answers: [{ id: "a" }, { id: "b" }] },
    { type: "answers", id: 2 },
  ]);
  served.release();
  const next = memory.takeJob(base, { token: "u", lockMs: 60_000 });
  expect(next).toMatchObject({ id: "a", attemptsStarted: 2 });
  expect(await here.redis.hget(`${base}:a`, "stc")).toBe("1");
});

test("performs no commands but those of the queue", () => {
  const memory = new FaultyStore(() => 0);
  const sent: ToWorker[] = [];
  const served = new ServedStore(memory, (message) => sent.push(message));
  const command = ["clear"] as unknown as StoreCommand;
  served.receive({ type: "commands", id: 1, commands: [command] });
  expect(sent).toEqual([{ type: "refused", id: 1, message: "clear is not a command" }]);
});
