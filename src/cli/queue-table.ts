import type { QueueState } from "../queue/read-queue.ts";
import { formatCount } from "../text/format-count.ts";

/** Formats the state of a queue for people. */
export function printQueue({ store, runs, workers }: QueueState): string {
  const memory = `${(store.memoryBytes / 2 ** 20).toFixed(1)} MiB`;
  const head = `store: ${memory}, ${store.clients} connections · ${runs.length} runs · ${workers.length} workers`;
  const runRows = runs.map((run) => [
    run.run,
    run.environment,
    `${run.host}/${run.pid}`,
    formatCount(run.waiting),
    formatCount(run.playing),
    formatCount(run.landed),
    run.waitsFor,
  ]);
  const workerRows = workers.map((worker) => [
    worker.worker,
    worker.host,
    worker.state,
    `${worker.playing}/${worker.concurrency}`,
    formatCount(worker.played),
    worker.attemptRate.toFixed(1),
    worker.turnRate.toFixed(1),
    formatCount(worker.tokenRate),
    `${Math.round(worker.busy * 100)} %`,
    worker.waitsFor,
  ]);
  const refusals = workers.flatMap(({ worker, refuses }) =>
    Object.entries(refuses).map(([run, why]) => `${worker} refuses ${run}: ${why}`),
  );
  return [
    head,
    ...(runs.length === 0 ? [] : ["", ...table(runHead, runRows)]),
    ...(workers.length === 0 ? [] : ["", ...table(workerHead, workerRows)]),
    ...(refusals.length === 0 ? [] : ["", ...refusals]),
    "",
  ].join("\n");
}

const runHead = ["run", "environment", "handed out by", "waiting", "playing", "done", "waits for"];

const workerHead = [
  "worker",
  "host",
  "state",
  "plays",
  "done",
  "attempts/s",
  "turns/s",
  "tokens/s",
  "busy",
  "waits for",
];

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  return [head, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(column === row.length - 1 ? 0 : widths[column]!))
      .join("  "),
  );
}
