import { endedBy } from "../../async/ended-by.ts";
import { onAbort } from "../../async/on-abort.ts";
import type { AdmissionGate } from "../start-run-options.ts";

/**
 * Waits for a place at a gate, which may be anyone's and heed no signal.
 *
 * @returns what gives the place back; `closed` where the signal aborted first. A place that comes later is
 *   given back at once.
 * @throws what the gate throws, unless the signal has aborted and that is how it ends its wait.
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
          // Nobody is there any more who could be told.
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
