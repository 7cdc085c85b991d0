import { describe, expect, test } from "vitest";
import { InvariantError, RolloutError, UsageError, ownBug } from "../errors.ts";
import { asRecorded, OutsideMisuse, PlaybackStop } from "../outside.ts";
import { packageFile } from "../files/package-file.ts";
import { reportUnhandledRejections } from "./pass-over-floating.ts";

/** An error with a stack of this package alone. */
function ours<Reason extends Error>(reason: Reason): Reason {
  const stack = `${reason.name}: ${reason.message}\n    at run (${packageFile("src/run/run.ts")}:1:2)`;
  return Object.defineProperty(reason, "stack", { value: stack });
}

/** Emits a rejection as Node does, but only to the tested listener. */
function rejected(reason: unknown): readonly string[] {
  const before = new Set(process.listeners("unhandledRejection"));
  const lines: string[] = [];
  using _floating = reportUnhandledRejections((line) => lines.push(line));
  const [added] = process.listeners("unhandledRejection").filter((one) => !before.has(one));
  added!(reason, Promise.resolve());
  return lines;
}

describe("reportUnhandledRejections()", () => {
  test.each<[what: string, reason: Error]>([
    ["a signal's reason", new DOMException("The limit of 5 ms is over", "TimeoutError")],
    ["an outage", new RolloutError("environment/exception", "no lamp")],
    ["a complaint", new UsageError("Cannot play")],
    ["the end of a recording", new PlaybackStop("it ends")],
    ["the recorded error of a call", asRecorded(new Error("the service is down"))],
    ["an error about a value that cannot be recorded", new OutsideMisuse("Cannot record 1n")],
  ])("ignores %s that foreign code got and did not handle", (_, reason) => {
    expect(rejected(ours(reason))).toEqual([
      "an environment, an agent or another module of yours: an unhandled promise was rejected: " +
        `${reason.message}; await it, or catch what it may throw`,
    ]);
  });

  test("ignores a foreign bug, thrown anywhere", () => {
    const [line] = rejected(new InvariantError("a lamp is on or off"));
    expect(line).toMatch(/^pass-over-floating\.test\.ts:\d+: an unhandled promise/);
  });

  test.each([ours(new TypeError("x is not a function")), ownBug("a run has one end")])(
    "lets a bug of ours end the process: %s",
    (reason) => {
      expect(() => rejected(reason)).toThrow(reason);
    },
  );
});
