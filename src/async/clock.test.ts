import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { createClock, systemClock } from "./clock.ts";

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

test("a clock with its own `sleep` calls back after it, unless cancelled", async () => {
  const manual = createManualClock();
  const clock = createClock(manual);
  const called: string[] = [];
  clock.after(50, () => called.push("first"));
  const callOff = clock.after(50, () => called.push("second"));
  callOff();
  await manual.advance(49);
  expect(called).toEqual([]);
  await manual.advance(1);
  expect(called).toEqual(["first"]);
});

describe("a wait longer than one of Node's timers can be", () => {
  // Those fire at once for anything longer than this.
  const longestMs = 2 ** 31 - 1;

  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([longestMs, longestMs + 1, 3 * longestMs + 5])(
    "of %d ms is over then and not before",
    async (ms) => {
      const called: string[] = [];
      systemClock.after(ms, () => called.push("after"));
      void systemClock.sleep(ms).then(() => called.push("sleep"));
      await vi.advanceTimersByTimeAsync(ms - 1);
      expect(called).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      expect(called).toEqual(["after", "sleep"]);
    },
  );

  test("can be called off in any of its parts, and without end does not end", async () => {
    const callOff = systemClock.after(3 * longestMs, () => expect.unreachable());
    const callOffEndless = systemClock.after(Infinity, () => expect.unreachable());
    await vi.advanceTimersByTimeAsync(2 * longestMs);
    callOff();
    callOffEndless();
    expect(vi.getTimerCount()).toBe(0);
  });
});
