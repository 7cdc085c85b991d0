import { expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { MemoryStore } from "../store/memory-store.fixture.ts";
import { memoryClients, plainLine } from "../store/memory-clients.fixture.ts";
import { QueueStore } from "../store/queue-store.ts";
import { HandOut, type HandOutOptions } from "./hand-out.ts";

async function openHandOut(
  memory: MemoryStore,
  options: Partial<HandOutOptions> = {},
): Promise<HandOut> {
  const clients = memoryClients(plainLine(memory));
  const store = await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
  const terms = { tokenizer: "t1" };
  const about = { run: "r", environment: "lamp", terms, sampling: {}, isRecorded: true };
  return await HandOut.open({ store, ...about, ...options });
}

test("says that the store takes nothing, before anything is handed out", async () => {
  const memory = new MemoryStore(() => 0);
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
  const refused = openHandOut(new MemoryStore(() => 0), { place });
  await expect(refused).rejects.toThrow(UsageError);
  await expect(refused).rejects.toThrow(/^Cannot use --shared \/shared: ENOSPC: no space left/);
});
