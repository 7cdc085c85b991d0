import { expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
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

test("a clock with a `sleep` of its own calls back when that is over, unless it is called off", async () => {
  const manual = manualClock();
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
