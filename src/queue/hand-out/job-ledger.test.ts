import { expect, test, vi } from "vitest";
import type { Episode } from "../../episode/episode.ts";
import type { AttemptJob } from "../job/attempt-job.ts";
import { faultyClients, plainLine } from "../local/faulty-connection.fixture.ts";
import { FaultyStore } from "../local/faulty-connection.fixture.ts";
import { QueueStore } from "../store/queue-store.ts";
import { HandedJob } from "./handed-job.ts";
import { JobLedger } from "./job-ledger.ts";
import { TakenColumns } from "./taken-columns.ts";

test("a job with a useless answer waits while the store accepts no writes", async () => {
  const memory = new FaultyStore(() => 0);
  const clients = faultyClients(plainLine(memory));
  const store = await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
  const queue = new store.bullmq.Queue("r", store.bullOptions);
  const reported: string[] = [];
  const book = new JobLedger({
    store,
    run: "r",
    queue,
    columns: new TakenColumns(undefined, store.clock),
    onNews: ({ type }) => reported.push(type),
  });
  const unplayed = { outcome: "aborted" } as Episode;
  const handed = new HandedJob({
    id: "j.1",
    group: "g",
    groupLeft: 1,
    onTrouble: undefined,
    columnStore: undefined,
    job: { rolloutId: "lamp/test/0#0", attempt: 1 } as AttemptJob,
    unplayed: () => unplayed,
    failed: () => unplayed,
  });
  const { signal } = new AbortController();
  let end: unknown;
  const playing = book.play(handed, { signal, interrupt: undefined });
  void playing.then(
    (episode) => (end = episode),
    (error: unknown) => (end = error),
  );
  await vi.waitFor(() => expect(handed.addedAtMs).toBeDefined());
  memory.refusesUntilMs = 1;
  book.take(handed.id, { answer: "of another form" });
  await vi.waitFor(() => expect(handed.isReading).toBe(false));
  expect([end, book.count, reported]).toEqual([undefined, 1, []]);
  memory.refusesUntilMs = 0;
  // The ledger's check finds the answer again.
  book.take(handed.id, { answer: "of another form" });
  await vi.waitFor(() => expect(handed.isReading).toBe(false));
  expect([end, book.count, reported]).toEqual([undefined, 1, ["result-refused"]]);
  handed.isInterrupted = true;
  book.take(handed.id, { answer: "of another form" });
  expect(await playing).toBe(unplayed);
});
