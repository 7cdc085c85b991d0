import type { Variables } from "../composition/create-engine.ts";
import type { AttemptPlayer } from "../run/attempt/attempt-player.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Run } from "../composition/create-run.ts";
import { describeHandOut } from "./describe-hand-out.ts";
import type { HandOutNews } from "./hand-out/hand-out-news.ts";

/** A run whose attempts are played by workers. */
export interface QueuedRun extends AsyncDisposable {
  readonly player: AttemptPlayer;
  /** The number of attempts that are handed out at the same time. */
  readonly concurrency: number;
  /** Removes the secrets of the run and of its queue. */
  readonly redactor: Redactor;
  /** Called when the run is finished: no later start needs the workers' files. */
  readonly finished?: () => void;
}

/** The folder of a run to hand out, and the surroundings of its process. */
export interface OpenQueuedRunOptions {
  readonly folder: RunFolder;
  readonly env?: Variables;
  /** Called with messages for a person. */
  readonly say: (text: string) => void;
  /** Stops the start of workers when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/** Returns a function that writes a notice to the run's events and shows it to the user. */
export function noteNews(
  { setup }: Pick<Run, "setup">,
  { folder, say }: Pick<OpenQueuedRunOptions, "folder" | "say">,
): (news: HandOutNews) => void {
  return (news) => {
    // If the disk refuses this event, writing the next episode fails, too, and ends the run.
    folder.writeEvent({ ...news, atMs: setup.now() }).catch(() => {});
    const text = describeHandOut(news);
    if (text !== undefined) say(text);
  };
}
