import type { Clock } from "../../../../async/clock.ts";
import { createDeferred } from "../../../deferred.ts";

/**
 * Limits the number of requests at a time, the number of waiting requests, and their waiting time.
 */
export interface RouterQueue {
  /**
   * Resolves with `full` if too many requests already wait, and with `late` after the time limit.
   * After `entered`, call `leave()` at the end.
   */
  enter(): Promise<"entered" | "full" | "late">;
  leave(): void;
}

/** Creates a router's queue. Times are in milliseconds. */
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
      // The request that has waited longest takes the place.
      if (next === undefined) insideCount -= 1;
      else next();
    },
  };
}
