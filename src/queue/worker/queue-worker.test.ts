import { expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { Redactor } from "../../internal/redactor.ts";
import { longLampSetup } from "../queue.fixture.ts";
import { memoryClients, plainLine } from "../store/memory-clients.fixture.ts";
import { MemoryStore } from "../store/memory-store.fixture.ts";
import { QueueStore } from "../store/queue-store.ts";
import { QueueWorker } from "./queue-worker.ts";

async function startWorker(memory: MemoryStore): Promise<QueueWorker> {
  const clients = memoryClients(plainLine(memory));
  const store = await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
  const setup = longLampSetup();
  const terms = { tokenizer: "t1" };
  return await QueueWorker.start({ store, setup, terms, redactor: new Redactor(), concurrency: 1 });
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
