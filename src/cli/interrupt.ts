import { setMaxListeners } from "node:events";
import { writeError } from "./write-out.ts";

/** The reason with which interrupted work rejects. */
const interruption = new DOMException("the run was interrupted", "AbortError");

/** The message of a command that keeps nothing. */
export const stopsAtOnce = "stopping (Ctrl-C again to quit at once)";

/** True if the error or its cause means that the caller cancelled the work. */
export function isInterruption(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (at === interruption) return true;
  return false;
}

/**
 * Returns a signal that aborts at the first Ctrl-C or SIGTERM, so that the run stops cleanly. A second one ends the
 * process immediately.
 *
 * @param said - The message for people.
 */
export function stopOnInterrupt(
  said = "stopping: finished episodes are kept (Ctrl-C again to quit at once)",
): AbortSignal {
  const controller = new AbortController();
  // Every running episode listens to this signal.
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

/** Resolves when the signal aborts. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
