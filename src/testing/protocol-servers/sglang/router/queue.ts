import type { Clock } from "../../../../async/clock.ts";
import { createDeferred } from "../../../deferred.ts";

/** Lets a limited number in at a time, and a limited number wait for a limited time. */
export interface RouterQueue {
  /** `full`: too many wait already. `late`: waited in vain. Who entered must `leave()`. */
  enter(): Promise<"entered" | "full" | "late">;
  leave(): void;
}

/** Makes the queue in front of a router. Waits are in milliseconds. */
export function createRouterQueue({
  maxConcurrent,
  queueSize,
  timeoutMs,
  sleep,
}: {
  maxConcurrent: number;
  queueSize: number;
  timeoutMs: number;
  sleep: Clock["sleep"];
}): RouterQueue {
  let insideCount = 0;
  const waiting: (() => void)[] = [];

  async function waitForTurn(): Promise<"entered" | "late"> {
    const timer = new AbortController();
    const turn = createDeferred<"entered">();
    const admit = (): void => turn.resolve("entered");
    waiting.push(admit);
    const late = sleep(timeoutMs, { signal: timer.signal }).then(
      () => "late" as const,
      () => "entered" as const,
    );
    const outcome = await Promise.race([turn.promise, late]);
    timer.abort();
    if (outcome === "late") waiting.splice(waiting.indexOf(admit), 1);
    return outcome;
  }

  return {
    async enter() {
      if (insideCount < maxConcurrent) {
        insideCount += 1;
        return "entered";
      }
      return waiting.length >= queueSize ? "full" : waitForTurn();
    },
    leave() {
      const next = waiting.shift();
      // The place passes on to who waited longest.
      if (next === undefined) insideCount -= 1;
      else next();
    },
  };
}
