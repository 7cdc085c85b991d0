import { expect, test } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { createClock } from "./clock.ts";
import { startPausableTimer } from "./pausable-timer.ts";

test("a pause does not count as time", async () => {
  const clock = createManualClock();
  let fired = 0;
  const timer = startPausableTimer(100, () => void (fired += 1), createClock(clock));
  await clock.advance(60);
  timer.pause();
  timer.pause();
  expect(timer.leftMs()).toBe(40);
  await clock.advance(1000);
  expect([fired, timer.leftMs()]).toEqual([0, 40]);
  timer.resume();
  timer.resume();
  await clock.advance(39);
  expect([fired, timer.leftMs()]).toEqual([0, 1]);
  await clock.advance(1);
  expect([fired, timer.leftMs()]).toEqual([1, 0]);
  timer.pause();
  timer.resume();
  await clock.advance(1000);
  expect(fired).toBe(1);
});

test("a timer that is shortened fires when so much time has passed, and none is made longer", async () => {
  const clock = createManualClock();
  const fired: string[] = [];
  const start = (name: string, ms: number) =>
    startPausableTimer(ms, () => fired.push(name), createClock(clock));
  const [long, short, endless, paused] = [
    start("long", 1000),
    start("short", 50),
    start("endless", Infinity),
    start("paused", 1000),
  ];
  paused.pause();
  await clock.advance(10);
  for (const timer of [long, short, endless, paused]) timer.shorten(100);
  expect([long, short, endless, paused].map((timer) => timer.leftMs())).toEqual([
    100, 40, 100, 100,
  ]);
  await clock.advance(99);
  expect(fired).toEqual(["short"]);
  await clock.advance(1);
  expect(fired).toEqual(["short", "long", "endless"]);
  paused.resume();
  await clock.advance(100);
  expect(fired).toEqual(["short", "long", "endless", "paused"]);
  long.shorten(0);
  await clock.advance(100);
  expect(fired).toHaveLength(4);
});

test("an extended timer gets the additional time, also while it is paused", async () => {
  const clock = createManualClock();
  const fired: string[] = [];
  const start = (name: string, ms: number) =>
    startPausableTimer(ms, () => fired.push(name), createClock(clock));
  const [running, paused, over] = [start("running", 50), start("paused", 50), start("over", 10)];
  await clock.advance(10);
  paused.pause();
  for (const timer of [running, paused, over]) timer.lengthen(100);
  expect([running, paused, over].map((timer) => timer.leftMs())).toEqual([140, 140, 0]);
  await clock.advance(139);
  expect(fired).toEqual(["over"]);
  await clock.advance(1);
  expect(fired).toEqual(["over", "running"]);
  paused.resume();
  await clock.advance(140);
  expect(fired).toEqual(["over", "running", "paused"]);
});

test("a cancelled timer never fires, nor does one without an end", async () => {
  const clock = createManualClock();
  let fired = 0;
  const timer = startPausableTimer(100, () => void (fired += 1), createClock(clock));
  const endless = startPausableTimer(Infinity, () => void (fired += 1), createClock(clock));
  timer.pause();
  timer.callOff();
  timer.resume();
  endless.pause();
  endless.resume();
  await clock.advance(10_000);
  expect([fired, endless.leftMs()]).toEqual([0, Infinity]);
});
