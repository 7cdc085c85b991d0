import type { Command } from "commander";
import {
  readWorkerConfig,
  workerSettings,
  type WorkerConfig,
} from "../../queue/worker/worker-settings.ts";
import { displaySettings, pickSettings, readDisplay, type Display } from "../display-settings.ts";
import { addConfiguredSettings, givenSettings } from "../option.ts";
import { groupSettings } from "../setting-groups.ts";
import { hideSecrets, writeError, writeOut } from "../write-out.ts";

/** The settings of the command. Each is a flag and a key of its configuration file. */
const settings = [...workerSettings, ...displaySettings];

/** `turnwright worker`: plays attempts of a queue. */
export function defineWorker(command: Command): void {
  command.description(
    "Plays attempts that `rollout`, `eval` or `serve` hand out with the same --queue. It takes the same " +
      "options as these; which tasks are played, how tokens are drawn and where the run is written is " +
      "the run's to say. SIGTERM lets it end what it plays. docs/scale.md has the rest.",
  );
  addConfiguredSettings(command, settings, groupSettings);
  command.action(async (flags: Record<string, unknown>) => {
    const given = await givenSettings(settings, flags);
    await work(readWorkerConfig(pickSettings(workerSettings, given)), readDisplay(given));
  });
}

async function work(config: WorkerConfig, display: Display): Promise<void> {
  const { openWorker } = await import("../../queue/worker/open-worker.ts");
  const { QueueStore } = await import("../../queue/store/queue-store.ts");
  const { createRunRedactor } = await import("../../composition/run-secrets.ts");
  hideSecrets(createRunRedactor(config.run, process.env));
  const note = (text: string): void => {
    if (!display.quiet) writeError(`note: ${text}\n`);
  };
  const stop = untilStopped(config.drainMs);
  await using opened = await openWorker(config, {
    connect: async (redactor) =>
      await QueueStore.connect(config.queue, { env: process.env, redactor }),
    onNote: ({ text }) => note(text),
    signal: stop.signal,
  });
  hideSecrets(opened.redactor);
  for (const text of opened.warnings) note(text);
  const { worker } = opened;
  const { concurrency } = config.run.conduct;
  await writeOut(
    display.json
      ? `${JSON.stringify({ type: "worker", worker: worker.name, concurrency })}\n`
      : `worker ${worker.name} takes ${concurrency} attempts at once\n`,
  );
  await Promise.race([stop.asked, worker.failed]);
  await worker.drain({ withinMs: config.drainMs });
  note("drained");
}

/**
 * Returns signals for the end of a worker. The first SIGINT or SIGTERM drains it. The second ends the process
 * immediately, and other workers take over its attempts.
 */
function untilStopped(drainMs: number): {
  readonly asked: Promise<void>;
  readonly signal: AbortSignal;
} {
  const controller = new AbortController();
  const asked = new Promise<void>((resolve) => {
    let askedAtMs: number | undefined;
    const onSignal = (): void => {
      if (askedAtMs !== undefined) {
        // A signal to the process group may arrive twice within a moment.
        if (performance.now() - askedAtMs > 300) process.exit(130);
        return;
      }
      askedAtMs = performance.now();
      const seconds = Math.round(drainMs / 1_000);
      writeError(
        `\ndraining: attempts have ${seconds} s to end, the rest is given back (again to quit at once)\n`,
      );
      controller.abort(new DOMException("the worker was stopped", "AbortError"));
      resolve();
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
  return { asked, signal: controller.signal };
}
