import type { Variables } from "../composition/create-engine.ts";
import type { AttemptPlayer } from "../run/attempt/attempt-player.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import type { Redactor } from "../secrets/redactor.ts";

/** A run with attempts that workers play. */
export interface QueuedRun extends AsyncDisposable {
  readonly player: AttemptPlayer;
  /** Attempts that are handed out at once. */
  readonly concurrency: number;
  /** Knows the secrets of the run and of its queue. */
  readonly redactor: Redactor;
  /** Called if the run is finished: no later start needs what workers left. */
  readonly finished?: () => void;
}

/** The folder of a run to hand out, and the outside of its process. */
export interface OpenQueuedRunOptions {
  readonly folder: RunFolder;
  readonly env?: Variables;
  /** Called with messages for a person. */
  readonly say: (text: string) => void;
  /** Stops the start of workers when it aborts. */
  readonly signal?: AbortSignal | undefined;
}
