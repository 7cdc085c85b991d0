import { expect, test } from "vitest";
import { UsageError, ownBug } from "../../errors.ts";
import { createClock } from "../../async/clock.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { Listeners } from "./listeners.ts";

const away = new TypeError("the pager is away");
const fails = (): never => {
  throw away;
};

function listen() {
  const stop = new AbortController();
  const time = createManualClock();
  const heard: unknown[] = [];
  const listeners = new Listeners({
    signal: stop.signal,
    onFailure: (error) => void heard.push(error),
    clock: createClock(time),
  });
  return { stop, time, heard, listeners };
}

test("an error of a listener is named, however it is called", async () => {
  const { heard, listeners } = listen();
  const named = new UsageError("Cannot tell of it: the pager is away", { cause: away });
  expect(() => listeners.call("tell of it", fails)).toThrow(named);
  await expect(listeners.ask("tell of it", fails)).rejects.toThrow(named);
  await expect(listeners.ask("tell of it", () => Promise.reject(away))).rejects.toThrow(named);
  expect(heard).toEqual([]);
  listeners.tell("tell of it", fails);
  expect(heard).toEqual([named]);
  listeners.call("tell of it", () => Promise.reject(away));
  await listeners.settle();
  expect(heard).toEqual([named, named]);
});

test("a UsageError, an own bug and the reason of a stop keep their message", async () => {
  const { stop, heard, listeners } = listen();
  for (const error of [new UsageError("no such file"), ownBug("ours")]) {
    const fail = (): never => {
      throw error;
    };
    expect(() => listeners.call("tell of it", fail)).toThrow(error);
  }
  stop.abort(new Error("enough"));
  const { reason } = stop.signal as { readonly reason: Error };
  await expect(listeners.ask("tell of it", () => Promise.reject(reason))).rejects.toBe(reason);
  listeners.tell("tell of it", () => stop.signal.throwIfAborted());
  listeners.call("tell of it", () => Promise.reject(reason));
  await Promise.resolve();
  expect(heard).toEqual([]);
});

test("listeners are waited for, but not for long", async () => {
  const { time, listeners } = listen();
  listeners.call("tell of it", () => new Promise(() => {}));
  const settled = listeners.settle();
  await time.untilSleeping(10_000);
  await time.advance(10_000);
  await settled;
});
