import { expect, test } from "vitest";
import { systemClock } from "../async/clock.ts";
import { crossBriefly } from "./boundary.ts";
import { CallWatch } from "./turn/call-watch.ts";

test("a late promise that is no longer awaited causes no unhandled rejection", async () => {
  using watch = new CallWatch(AbortSignal.abort(new Error("stopped")), systemClock);
  const boundary = { party: "agent", what: "read turn 0", timeoutMs: 5 } as const;
  const late = Promise.reject(new Error("no lamp"));
  await expect(
    crossBriefly(
      watch,
      () => boundary,
      () => late,
    ),
  ).rejects.toThrow("stopped");
  // Vitest fails on unhandled rejections.
  await new Promise((resolve) => setImmediate(resolve));
});
