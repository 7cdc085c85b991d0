import { endedBy } from "../../async/ended-by.ts";
import { onAbort } from "../../async/on-abort.ts";
import type { AdmissionGate } from "../start-run-options.ts";

/**
 * Waits for a place at a caller's gate, which may ignore the signal.
 *
 * @returns a function that gives the place back; `closed` if the signal aborted first. A place that comes later is
 *   given back immediately.
 * @throws the gate's error, unless the gate ends its wait with it after the signal has aborted.
 */
export async function admitTo(
  gate: AdmissionGate,
  priority: number,
  signal: AbortSignal,
): Promise<(() => void) | "closed"> {
  if (signal.aborted) return "closed";
  let isLeft = false;
  const place = (async () => await gate.admit({ priority, signal }))();
  return await new Promise((resolve, reject) => {
    const letGo = onAbort(signal, () => {
      isLeft = true;
      resolve("closed");
    });
    place.then(
      (leave) => {
        letGo();
        if (!isLeft) {
          resolve(leave);
          return;
        }
        try {
          leave();
        } catch {
          // The run has moved on, so this error is not reported.
        }
      },
      (error: unknown) => {
        letGo();
        if (endedBy(signal, error)) resolve("closed");
        else reject(error);
      },
    );
  });
}
