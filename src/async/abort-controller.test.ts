import { getEventListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { createAbortController } from "./abort-controller.ts";
import { packageFile } from "../files/package-file.ts";
import { reportUnhandledRejections } from "./pass-over-floating.ts";

test("throwing listeners are reported, and the others are still called", async () => {
  const lines: string[] = [];
  using _floating = reportUnhandledRejections((line) => lines.push(line));
  const controller = createAbortController();
  const heard: unknown[] = [];
  const { signal } = controller;
  signal.addEventListener("abort", () => {
    throw new TypeError("no child yet");
  });
  const rejects = (): unknown => Promise.reject(new Error("the child stays"));
  signal.addEventListener("abort", rejects);
  signal.addEventListener("abort", {
    handleEvent() {
      throw new Error("no handle");
    },
  });
  Object.assign(signal, {
    onabort: () => {
      throw new Error("no event");
    },
  });
  signal.addEventListener("abort", function (this: AbortSignal, { target }) {
    heard.push(this.reason, target === signal);
  });
  controller.abort("over");
  await setImmediate();
  expect(heard).toEqual(["over", true]);
  expect(lines.map((line) => line.replace(/^abort-controller\.test\.ts:\d+: /, ""))).toEqual(
    ["no child yet", "no handle", "no event", "the child stays"].map(
      (said) => `a listener of an abort signal threw: ${said}; catch what it may throw`,
    ),
  );
});

test("a program without a hearer is warned", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  const controller = createAbortController();
  controller.signal.addEventListener("abort", () => {
    throw new TypeError("no child yet");
  });
  controller.abort();
  await setImmediate();
  expect(warn.mock.calls.map(([line]) => String(line).replace(/:\d+:/, ":0:"))).toEqual([
    "abort-controller.test.ts:0: a listener of an abort signal threw: no child yet; catch what it may throw",
  ]);
});

test("a listener is registered once, and released", () => {
  const controller = createAbortController();
  const { signal } = controller;
  let count = 0;
  const listener = (): void => void (count += 1);
  const gone = (): void => void (count += 100);
  for (const one of [listener, listener, gone]) signal.addEventListener("abort", one);
  signal.removeEventListener("abort", gone);
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  controller.abort();
  expect(count).toBe(1);
});

test("a bug in this package ends the process", async () => {
  const others = process.listeners("uncaughtException");
  const caught: unknown[] = [];
  process.removeAllListeners("uncaughtException");
  process.once("uncaughtException", (error) => caught.push(error));
  onTestFinished(() => {
    for (const other of others) process.on("uncaughtException", other);
  });
  const controller = createAbortController();
  const stack = `TypeError: x\n    at run (${packageFile("src/run/run.ts")}:1:2)`;
  const bug = Object.defineProperty(new TypeError("x"), "stack", { value: stack });
  controller.signal.addEventListener("abort", () => {
    throw bug;
  });
  controller.abort();
  await setImmediate();
  expect(caught).toEqual([bug]);
});
