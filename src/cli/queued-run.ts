import { openHandOut } from "../queue/open-hand-out.ts";
import { describeContact, describeHandOut } from "../queue/describe-hand-out.ts";
import { handedOutAtOnce, type QueueConfig } from "../queue/queue-settings.ts";
import type { AttemptPlayer } from "../run/attempt-player.ts";
import type { RunFolder } from "../run/run-folder.ts";
import type { Run } from "../setup/create-run.ts";
import { createRunRedactor } from "../setup/run-secrets.ts";
import { hideSecrets } from "./write-out.ts";

/** A run whose attempts workers play. */
export interface QueuedRun extends AsyncDisposable {
  readonly player: AttemptPlayer;
  /** Attempts that are handed out at once. */
  readonly concurrency: number;
}

/** Hands a run's attempts out; what is particular about that is noted in the run's folder. */
export async function openQueuedRun(
  run: Run,
  {
    folder,
    queue,
    say,
  }: {
    readonly folder: RunFolder;
    readonly queue: QueueConfig;
    readonly say: (text: string) => void;
  },
): Promise<QueuedRun> {
  const { config, setup, manifest } = run;
  const redactor = createRunRedactor(config, process.env);
  const opened = await openHandOut({
    ...{ config: queue, dir: folder.dir, manifest, redactor },
    ...{ environment: setup.environment.name, sampling: config.sampling },
    isRecorded: config.conduct.record !== "none",
    onNews: (news) => {
      // A disk that refuses this refuses the next episode, too, and that ends the run.
      folder.writeEvent({ ...news, atMs: setup.now() }).catch(() => {});
      const text = describeHandOut(news);
      if (text !== undefined) say(text);
    },
    onContact: (contact) => say(describeContact(contact)),
  });
  hideSecrets(redactor);
  return {
    player: opened.handOut.player(),
    concurrency: config.settings.concurrency ?? handedOutAtOnce,
    [Symbol.asyncDispose]: async () => await opened[Symbol.asyncDispose](),
  };
}
