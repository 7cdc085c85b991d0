import type { Variables } from "../composition/create-engine.ts";
import type { AttemptPlayer } from "../run/attempt/attempt-player.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import type { Redactor } from "../secrets/redactor.ts";

/** A run whose attempts are played by workers. */
export interface QueuedRun extends AsyncDisposable {
  readonly player: AttemptPlayer;
  /** The number of attempts that are handed out at once. */
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
