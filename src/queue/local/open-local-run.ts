import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { systemClock } from "../../async/clock.ts";
import { createRunRedactor } from "../../composition/run-secrets.ts";
import { columnsFolder } from "../../run/columns/column-index.ts";
import type { Run } from "../../composition/create-run.ts";
import { handOutOver } from "../open-hand-out.ts";
import { noteNews, type OpenQueuedRunOptions, type QueuedRun } from "../queued-run.ts";
import { openSharedFolder } from "../place/shared-folder.ts";
import { QueueStore } from "../store/queue-store.ts";
import { localClients } from "./local-clients.ts";
import { LocalStore } from "./local-store.ts";
import { connectHere } from "./store-connection.ts";
import { WorkerProcesses } from "./worker-processes.ts";

/**
 * The subfolder of the run's folder with recordings of running attempts, and with results that the
 * hand-out has not read.
 */
const sharedFolder = ".workers";

/**
 * Starts worker processes on this machine, and hands out a run's attempts to them. Writes notices
 * to the run's events.
 * @throws UsageError if a worker cannot start.
 * @throws the signal's reason if it aborts.
 */
export async function openLocalRun(
  run: Run,
  {
    folder,
    workers,
    env = process.env,
    say,
    signal,
  }: OpenQueuedRunOptions & { readonly workers: number | "auto" },
): Promise<QueuedRun> {
  const { config, setup, manifest } = run;
  const { concurrency } = config.conduct;
  const asked = workers === "auto" ? availableParallelism() : workers;
  const count = Math.min(asked, concurrency);
  const share = Math.ceil(concurrency / count);
  const redactor = createRunRedactor(config, env);
  const note = noteNews(run, { folder, say });
  const shared = path.join(folder.dir, sharedFolder);
  const store = new LocalStore({ now: systemClock.now, wallNow: Date.now });
  const client = await QueueStore.over(localClients(() => connectHere(store, systemClock)));
  const handOut = await handOutOver(client, await openSharedFolder(shared), {
    dir: folder.dir,
    runId: folder.manifest.runId,
    manifest,
    redactor,
    environment: setup.environment.name,
    sampling: config.sampling,
    isRecorded: config.conduct.record !== "none",
    onNews: (news) => {
      // `WorkerProcesses` already replaces a lost worker.
      if (news.type === "no-worker" || news.type === "worker-there") return;
      note(news);
    },
  });
  try {
    const processes = await WorkerProcesses.start({
      store,
      count,
      settings: { ...config.settings, concurrency: share },
      shared,
      columnsDir: path.join(folder.dir, columnsFolder),
      env,
      signal,
      say: (text) => say(redactor.text(text)),
      onFailure: (error) => handOut.fail(error),
    });
    const each = share === 1 ? "one episode" : `up to ${share} episodes`;
    const who = count === 1 ? "1 worker process plays" : `${count} worker processes play`;
    say(`${who}, ${each}${count === 1 ? "" : " each"} at once`);
    let isFinished = false;
    return {
      player: handOut.player(),
      concurrency,
      redactor,
      finished: () => void (isFinished = true),
      async [Symbol.asyncDispose]() {
        {
          await using _client = client;
          await using _processes = processes;
          // The hand-out must cancel its jobs before the workers leave.
          await handOut[Symbol.asyncDispose]();
        }
        if (isFinished) await rm(shared, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await using _client = client;
    await handOut[Symbol.asyncDispose]();
    throw error;
  }
}
