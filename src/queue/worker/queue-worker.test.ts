import { expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { Redactor } from "../../internal/redactor.ts";
import { HandOut } from "../hand-out/hand-out.ts";
import { longLampSetup, until } from "../queue.fixture.ts";
import { acknowledgedKey, newsChannel, runsKey } from "../store/keys.ts";
import { memoryClients, plainLine } from "../store/memory-clients.fixture.ts";
import { MemoryStore } from "../store/memory-store.fixture.ts";
import { QueueStore } from "../store/queue-store.ts";
import { QueueWorker } from "./queue-worker.ts";

const terms = { tokenizer: "t1" };

async function connect(memory: MemoryStore): Promise<QueueStore> {
  const clients = memoryClients(plainLine(memory));
  return await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
}

async function startWorker(
  memory: MemoryStore,
  onNote: (text: string) => void = () => {},
  options: { readonly leaseMs?: number } = {},
): Promise<QueueWorker> {
  const store = await connect(memory);
  const about = { store, setup: longLampSetup(), terms, redactor: new Redactor(), concurrency: 1 };
  return await QueueWorker.start({ ...about, onNote, ...options });
}

test("says that the store takes nothing, before it is counted on", async () => {
  const memory = new MemoryStore(() => 0);
  memory.refusesUntilMs = 1;
  const refused = startWorker(memory);
  await expect(refused).rejects.toThrow(UsageError);
  await expect(refused).rejects.toThrow(
    /^Cannot work for the queue's store, which takes nothing now: .*; start again when it does$/,
  );
});

test("leaves all of its runs also while the store takes nothing", async () => {
  const memory = new MemoryStore(() => 0);
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
  const memory = new MemoryStore(() => 0);
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
    ...{ ...about, terms: { tokenizer: "t2" } },
    store: await connect(memory),
  });
  await second.policy.close("interrupt");
  expect(await joined()).toBe(0);
  await worker[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});
