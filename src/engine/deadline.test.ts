import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import { createClock, systemClock } from "./clock.ts";
import { startDeadline } from "./deadline.ts";

test("a deadline aborts when its time is over", async () => {
  const clock = manualClock();
  using deadline = startDeadline({ ms: 50, parents: [], clock: createClock(clock) });
  await clock.advance(49);
  expect([deadline.signal.aborted, deadline.expired]).toEqual([false, false]);
  await clock.advance(1);
  expect([deadline.signal.aborted, deadline.expired]).toEqual([true, true]);
  expect(deadline.signal.reason).toMatchObject({ name: "TimeoutError" });
});

test("a deadline aborts with its parents, for their reason, and is then not expired", async () => {
  const clock = manualClock();
  const parent = new AbortController();
  using deadline = startDeadline({
    ms: 50,
    parents: [undefined, parent.signal],
    clock: createClock(clock),
  });
  const reason = new Error("enough");
  parent.abort(reason);
  await clock.advance(100);
  expect(deadline.signal.reason).toBe(reason);
  expect(deadline.expired).toBe(false);
  using late = startDeadline({ ms: 50, parents: [parent.signal], clock: createClock(clock) });
  expect(late.signal.reason).toBe(reason);
});

test("a deadline leaves nothing behind on its parents or the clock", () => {
  const clock = manualClock();
  const parent = new AbortController();
  for (let count = 0; count < 20; count++) {
    using deadline = startDeadline({ ms: 50, parents: [parent.signal], clock: createClock(clock) });
    expect(deadline.signal.aborted).toBe(false);
  }
  expect(getEventListeners(parent.signal, "abort")).toEqual([]);
  expect(clock.pendingCount).toBe(0);
});

test("the system's clock ends a wait with the signal's reason", async () => {
  const controller = new AbortController();
  const wait = systemClock.sleep(60_000, { signal: controller.signal });
  const reason = new Error("enough");
  controller.abort(reason);
  await expect(wait).rejects.toBe(reason);
  await expect(systemClock.sleep(1, { signal: controller.signal })).rejects.toBe(reason);
  const before = systemClock.now();
  await systemClock.sleep(1);
  expect(systemClock.now()).toBeGreaterThan(before);
});
