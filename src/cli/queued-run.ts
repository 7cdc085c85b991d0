import { openHandOut } from "../queue/open-hand-out.ts";
import type { HandOutNews } from "../queue/hand-out/hand-out-news.ts";
import type { QueueConfig } from "../queue/queue-settings.ts";
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

/** Attempts that are handed out at once where nobody says how many: more than few workers play. */
const handedOutAtOnce = 1_024;

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
    onContact: ({ isThere, why }) => {
      const lost = why === undefined ? "" : ` (${why})`;
      say(
        isThere
          ? "reaches the queue's store again"
          : `cannot reach the queue's store${lost}, retrying`,
      );
    },
  });
  hideSecrets(redactor);
  return {
    player: opened.handOut.player(),
    concurrency: config.settings.concurrency ?? handedOutAtOnce,
    [Symbol.asyncDispose]: async () => await opened[Symbol.asyncDispose](),
  };
}

/** What a person is told of; the run's events have the rest. */
function describeHandOut(news: HandOutNews): string | undefined {
  switch (news.type) {
    case "no-worker":
      return `waiting: ${news.why}`;
    case "worker-there":
      return "a worker plays";
    case "result-refused":
      return `handing out ${news.rolloutId} again: ${news.reason} (worker ${news.worker})`;
    case "attempt-played-again":
      return undefined;
  }
}
