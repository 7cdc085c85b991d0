import { expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { Redactor } from "../../internal/redactor.ts";
import { HandOut } from "../hand-out/hand-out.ts";
import { longLampSetup } from "../queue.fixture.ts";
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
): Promise<QueueWorker> {
  const store = await connect(memory);
  const about = { store, setup: longLampSetup(), terms, redactor: new Redactor(), concurrency: 1 };
  return await QueueWorker.start({ ...about, onNote });
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
