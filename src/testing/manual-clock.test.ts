import { expect, test } from "vitest";
import { createManualClock } from "./manual-clock.ts";

test("`advance()` fires due timers, in the order of time", async () => {
  const clock = createManualClock({ startMs: 100 });
  const woken: [name: string, atMs: number][] = [];
  const wait = async (name: string, ms: number): Promise<void> => {
    await clock.sleep(ms);
    woken.push([name, clock.now()]);
  };
  const waits = [wait("late", 30), wait("early", 10), wait("never", 31)];
  await clock.advance(30);
  expect(woken).toEqual([
    ["early", 110],
    ["late", 130],
  ]);
  expect(clock.pendingCount).toBe(1);
  await clock.advance(1);
  await Promise.all(waits);
  expect(clock.sleeps).toEqual([30, 10, 31]);
});

test("`advance()` also wakes what begins to wait on the way", async () => {
  const clock = createManualClock();
  let ticks = 0;
  const tick = async (): Promise<void> => {
    for (; ticks < 5; ticks++) await clock.sleep(10);
  };
  const ticking = tick();
  await clock.advance(45);
  expect([ticks, clock.now()]).toEqual([4, 45]);
  await clock.advance(5);
  await ticking;
});

test("waits up to `skipUpToMs` end at once and move the clock", async () => {
  const clock = createManualClock({ skipUpToMs: 100 });
  const long = clock.sleep(150);
  await clock.sleep(100);
  expect(clock.now()).toBe(100);
  await clock.sleep(60);
  await long;
  expect(clock.now()).toBe(160);
});

test("`untilSleeping()` resolves when that wait has started", async () => {
  const clock = createManualClock();
  const seen = clock.untilSleeping(7);
  const controller = new AbortController();
  const wait = clock.sleep(7, { signal: controller.signal });
  await seen;
  controller.abort(new Error("enough"));
  await expect(wait).rejects.toThrow("enough");
  expect(clock.pendingCount).toBe(0);
});
