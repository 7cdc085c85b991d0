import { setMaxListeners } from "node:events";
import { writeError } from "./write-out.ts";

/** What whoever waits is rejected with. */
const interruption = new DOMException("the run was interrupted", "AbortError");

/** Whether an error says only that, by itself or as its cause: what was begun was given up by whoever began it. */
export function isInterruption(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (at === interruption) return true;
  return false;
}

/**
 * A signal that is aborted by the first Ctrl-C (or SIGTERM): the run then stops cleanly. A second
 * one ends the process at once.
 *
 * @param said - What the person is told then.
 */
export function stopOnInterrupt(
  said = "stopping: finished episodes are kept (Ctrl-C again to quit at once)",
): AbortSignal {
  const controller = new AbortController();
  // Everything that runs listens to it.
  setMaxListeners(0, controller.signal);
  const onSignal = () => {
    if (controller.signal.aborted) process.exit(130);
    writeError(`\n${said}\n`);
    controller.abort(interruption);
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return controller.signal;
}
