import type { Run } from "../composition/create-run.ts";
import { createRunRedactor } from "../composition/run-secrets.ts";
import { describeContact } from "./describe-hand-out.ts";
import { openHandOut } from "./open-hand-out.ts";
import { noteNews, type OpenQueuedRunOptions, type QueuedRun } from "./queued-run.ts";
import { handedOutAtOnce, type HandOutConfig, type QueueConfig } from "./queue-settings.ts";

/**
 * Opens a run whose attempts are played by worker processes or by workers of a queue. Loads only
 * the code that the configuration needs.
 * @throws UsageError as `openQueuedRun()` and `openLocalRun()` do.
 */
export async function openPlayers(
  run: Run,
  config: HandOutConfig,
  options: OpenQueuedRunOptions,
): Promise<QueuedRun> {
  if (config.type === "queue") return await openQueuedRun(run, { ...options, queue: config.queue });
  const { openLocalRun } = await import("./local/open-local-run.ts");
  return await openLocalRun(run, { ...options, workers: config.workers });
}

/**
 * Hands out a run's attempts through a queue. Writes notices to the run's events.
 * @throws UsageError if a package is missing, or if the store or the shared place cannot be used.
 */
async function openQueuedRun(
  run: Run,
  { folder, queue, env = process.env, say }: OpenQueuedRunOptions & { readonly queue: QueueConfig },
): Promise<QueuedRun> {
  const { config, setup, manifest } = run;
  const redactor = createRunRedactor(config, env);
  const opened = await openHandOut({
    config: queue,
    dir: folder.dir,
    runId: folder.manifest.runId,
    manifest,
    redactor,
    env,
    environment: setup.environment.name,
    sampling: config.sampling,
    limits: setup.limits,
    columns: setup.columns,
    isRecorded: config.conduct.record !== "none",
    onNews: noteNews(run, { folder, say }),
    onContact: (contact) => say(describeContact(contact)),
  });
  for (const text of opened.warnings) say(text);
  return {
    player: opened.handOut.player(),
    concurrency: config.settings.concurrency ?? handedOutAtOnce,
    redactor,
    finished: opened.finished,
    [Symbol.asyncDispose]: async () => await opened[Symbol.asyncDispose](),
  };
}
