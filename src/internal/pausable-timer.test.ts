import { expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import { createClock } from "./clock.ts";
import { startPausableTimer } from "./pausable-timer.ts";

test("a pause is no time that passes", async () => {
  const clock = manualClock();
  let fired = 0;
  const timer = startPausableTimer(100, () => void (fired += 1), createClock(clock));
  await clock.advance(60);
  timer.pause();
  timer.pause();
  expect(timer.leftMs()).toBe(40);
  await clock.advance(1000);
  expect([fired, timer.leftMs()]).toEqual([0, 40]);
  timer.goOn();
  timer.goOn();
  await clock.advance(39);
  expect([fired, timer.leftMs()]).toEqual([0, 1]);
  await clock.advance(1);
  expect([fired, timer.leftMs()]).toEqual([1, 0]);
  timer.pause();
  timer.goOn();
  await clock.advance(1000);
  expect(fired).toBe(1);
});

test("a timer that was called off never fires, nor does one without an end", async () => {
  const clock = manualClock();
  let fired = 0;
  const timer = startPausableTimer(100, () => void (fired += 1), createClock(clock));
  const endless = startPausableTimer(Infinity, () => void (fired += 1), createClock(clock));
  timer.pause();
  timer.callOff();
  timer.goOn();
  endless.pause();
  endless.goOn();
  await clock.advance(10_000);
  expect([fired, endless.leftMs()]).toEqual([0, Infinity]);
});
