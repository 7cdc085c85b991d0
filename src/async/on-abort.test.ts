import { getEventListeners, once } from "node:events";
import { describe, expect, test } from "vitest";
import { onAbort } from "./on-abort.ts";

describe("onAbort()", () => {
  test("calls each callback once, in order, except removed ones", () => {
    const controller = new AbortController();
    const calls: string[] = [];
    const note = (name: string) => () => void calls.push(name);
    onAbort(controller.signal, note("first"));
    const leave = onAbort(controller.signal, note("second"));
    onAbort(controller.signal, note("third"));
    leave();
    leave();
    controller.abort();
    controller.abort();
    onAbort(controller.signal, note("late"));
    expect(calls).toEqual(["first", "third"]);
  });

  test("does not call a callback that another one removes, and passes the reason", () => {
    const controller = new AbortController();
    const reasons: unknown[] = [];
    const { signal } = controller;
    onAbort(signal, () => {
      reasons.push(signal.reason);
      leave();
    });
    const leave = onAbort(signal, () => void reasons.push("left"));
    controller.abort("enough");
    expect(reasons).toEqual(["enough"]);
  });

  test("calls the same function as often as it was given", () => {
    const controller = new AbortController();
    let count = 0;
    const add = (): void => void count++;
    onAbort(controller.signal, add);
    const leave = onAbort(controller.signal, add);
    onAbort(controller.signal, add);
    leave();
    controller.abort();
    expect(count).toBe(2);
  });

  test("adds one listener to a signal for any number of callbacks, and none without callbacks", () => {
    const { signal } = new AbortController();
    const leaves = Array.from({ length: 1000 }, () => onAbort(signal, () => {}));
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    for (const leave of leaves) leave();
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    onAbort(signal, () => {});
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
  });

  test("calls the others if one throws, which crashes like a listener's error", async () => {
    const controller = new AbortController();
    const fault = new Error("a fault");
    let isCalled = false;
    onAbort(controller.signal, () => {
      throw fault;
    });
    onAbort(controller.signal, () => void (isCalled = true));
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    const crash = once(process, "uncaughtException");
    controller.abort();
    expect(isCalled).toBe(true);
    expect((await crash)[0]).toBe(fault);
    for (const other of others) process.on("uncaughtException", other);
  });
});
