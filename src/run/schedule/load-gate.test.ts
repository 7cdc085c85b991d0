import { describe, expect, test } from "vitest";
import type { Engine, EngineLoad } from "../../engine/engine.ts";
import type { Clock } from "../../async/clock.ts";
import { openLoadGate } from "./load-gate.ts";
import { PolicyGate } from "../policy/policy-gate.ts";

/** Sleeps end on the test's request. */
function manualSleeps() {
  const sleeping: (() => void)[] = [];
  const clock: Clock = {
    now: () => 0,
    sleep: (_ms, { signal } = {}) =>
      new Promise((resolve, reject) => {
        sleeping.push(resolve);
        signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      }),
    after: () => () => {},
  };
  const wake = async () => {
    sleeping.shift()?.();
    // A reading and its consequences take a few turns of the event loop.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  return { clock, wake };
}

function engineThatSays(load: () => EngineLoad): Engine {
  return {
    kind: "fake",
    generate: () => Promise.reject(new Error("no sample is expected")),
    describe: async () => ({ kind: "fake", logprobConvention: "raw" }),
    load: async () => load(),
    close: async () => {},
  };
}

function loadOf(keyValueUse: number): EngineLoad {
  return { workers: [{ runningCount: 8, keyValueUse }], silent: [] };
}

describe("openLoadGate()", () => {
  test("lets fewer in while the engine's memory is full, and more again when there is room", async () => {
    const { clock, wake } = manualSleeps();
    let use = 0.95;
    // Through the gate that startRun() puts in front of the engine.
    const { engine } = new PolicyGate(engineThatSays(() => loadOf(use)));
    await using gate = openLoadGate({ engine, clock }, { concurrency: 16, followLoad: true });
    const limits = [gate?.state.limit];
    await wake();
    limits.push(gate?.state.limit);
    use = 0.5;
    await wake();
    limits.push(gate?.state.limit);
    expect(limits).toEqual([16, 14, 15]);
  });

  test("is undefined if it is not requested, or the engine reports no load", () => {
    const mute = { ...engineThatSays(() => loadOf(0)) };
    delete mute.load;
    const options = { concurrency: 4, followLoad: true };
    expect(openLoadGate({ engine: mute }, options)).toBeUndefined();
    const engine = engineThatSays(() => loadOf(0));
    expect(openLoadGate({ engine }, { ...options, followLoad: false })).toBeUndefined();
  });
});
