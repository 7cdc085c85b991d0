import path from "node:path";
import { systemClock } from "../../src/async/clock.ts";
import { HandOut } from "../../src/queue/hand-out/hand-out.ts";
import { connectHere } from "../../src/queue/local/store-connection.ts";
import { localClients } from "../../src/queue/local/local-clients.ts";
import { LocalStore } from "../../src/queue/local/local-store.ts";
import { WorkerProcesses } from "../../src/queue/local/worker-processes.ts";
import { openSharedFolder } from "../../src/queue/place/shared-folder.ts";
import { QueueStore } from "../../src/queue/store/queue-store.ts";
import type { AttemptPlayer } from "../../src/run/attempt/attempt-player.ts";
import type { LiveRun } from "../../src/run/live-run.ts";
import { RunFolder } from "../../src/run/folder/run-folder.ts";
import { startRun } from "../../src/run/start-run.ts";
import { createTaskList } from "../../src/run/schedule/task-source.ts";
import {
  killedManifest,
  killedSetup,
  readWeights,
  sampleCount,
  taskCount,
  writeWeights,
} from "./invented-setup.ts";

// Plays the rest of a run with invented columns, changes the weights meanwhile, and is killed by `kill-columns.mjs`.
//
//     invented-run.mjs DIR WORKERS WHERE BRANCHES
//
// WHERE is "own" (workers write columns into the run's folder) or "shared" (into a shared folder).

const [dir = "", workers = "0", where = "own", branches = "no"] = process.argv.slice(2);
const workerProgram = path.join(import.meta.dirname, "invented-worker.mjs");

/** Time between two updates of the weights, in milliseconds. */
const updateEveryMs = 70;
const modes = ["interrupt", "hold", "interrupt", "finish"] as const;

async function openPlayers(
  folder: RunFolder,
): Promise<(AsyncDisposable & { readonly player: AttemptPlayer }) | undefined> {
  if (workers === "0") return undefined;
  const shared = path.join(dir, "shared");
  const place = await openSharedFolder(shared);
  const store = new LocalStore({ now: systemClock.now, wallNow: Date.now });
  const client = await QueueStore.over(localClients(() => connectHere(store, systemClock)));
  const columnsDir =
    where === "shared" ? place.columnsOf!("killed") : path.join(folder.dir, "columns");
  const handOut = await HandOut.open({
    store: client,
    run: "killed",
    environment: "tally",
    terms: {},
    sampling: killedSetup(dir).sampling,
    isRecorded: true,
    place,
    ...(where === "shared" && { columnsDir }),
    onNews: (news) => {
      if (news.type === "result-refused") process.stderr.write(`${JSON.stringify(news)}\n`);
    },
  });
  const processes = await WorkerProcesses.start({
    store,
    count: Number(workers),
    program: workerProgram,
    // The worker program makes its own setup. It reads this folder from its environment.
    settings: {} as never,
    shared,
    columnsDir,
    env: { ...process.env, KILLED_DIR: dir },
    say: () => {},
    onFailure: (error) => handOut.fail(error),
  });
  return {
    player: handOut.player(),
    async [Symbol.asyncDispose]() {
      await using _client = client;
      await using _processes = processes;
      await handOut[Symbol.asyncDispose]();
    },
  };
}

async function changeWeights(run: LiveRun, ended: AbortSignal): Promise<void> {
  for (let count = 0; !ended.aborted; count++) {
    await systemClock.sleep(updateEveryMs);
    if (ended.aborted) return;
    const version = readWeights(dir) + 1;
    const update = (): Promise<void> => Promise.resolve(writeWeights(dir, version));
    await run.updatePolicy(version, update, modes[count % modes.length]);
  }
}

{
  const setup = killedSetup(dir);
  await using folder = await RunFolder.open(path.join(dir, "run"), killedManifest, {
    retryFailed: false,
  });
  await using players = await openPlayers(folder);
  const taskIndexes = Array.from({ length: taskCount }, (_, index) => index);
  const run = startRun({
    source: createTaskList(setup.environment, { split: "test", taskIndexes }),
    setup,
    grouping: { size: sampleCount, ...(branches === "yes" && { branchAt: [1] }) },
    admission: { concurrency: 4 },
    maxFailuresInRow: 3,
    folder,
    ...(players && { player: players.player }),
  });
  process.stdout.write("playing\n");
  const ended = new AbortController();
  // An update fails if the run ends meanwhile. The run's own error is the one to report.
  const changing = changeWeights(run, ended.signal).catch(() => {});
  for await (const _ of run);
  ended.abort();
  await changing;
  const { end } = await run.result;
  if (end !== "finished") throw new Error(`the run ended as ${end}`);
}
process.exit();
