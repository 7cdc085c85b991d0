import { describe, expect, test } from "vitest";
import type { Engine, Generation } from "../../engine/engine.ts";
import { RolloutError } from "../../errors.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { watchEngine, type EngineOutage } from "./engine-watch.ts";
import { createClock } from "../../async/clock.ts";
import { createManualClock } from "../../testing/manual-clock.ts";

const request = {
  promptIds: [1],
  sampling: {},
  maxNewTokens: 1,
  stopTokenIds: [2],
  requestId: "r",
  sessionId: "s",
};
const generation: Generation = {
  outputIds: [2],
  logprobs: [0],
  finish: { type: "stop" },
  discarded: [],
  pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "", finish: "stop" }],
};

/** A clock that stands still until `pass()` moves it, and lets everything due happen. */
function standingClock() {
  const time = createManualClock();
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 500) {
      await settle();
      await time.advance(Math.min(500, ms - passed));
    }
    await settle();
  };
  return { clock: createClock(time), pass };
}

/** An engine that can be switched off, and answers on demand. */
function wayward() {
  const answer = withResolvers();
  const state = { isThere: true, probeCount: 0 };
  const engine: Engine = {
    kind: "fake",
    async generate() {
      await answer.promise;
      return generation;
    },
    async describe() {
      state.probeCount += 1;
      if (!state.isThere) throw new RolloutError("engine/unreachable", "Cannot reach it");
      return { kind: "fake", logprobConvention: "raw" };
    },
    close: async () => {},
  };
  return { answer, state, engine };
}

describe("watchEngine()", () => {
  test("reports an outage of the engine within 15 s, again each minute, and its end", async () => {
    const { clock, pass } = standingClock();
    const { answer, state, engine } = wayward();
    const outages: (EngineOutage & { readonly atMs: number })[] = [];
    const onOutage = (each: EngineOutage) => outages.push({ ...each, atMs: clock.now() });
    await using watch = watchEngine(engine, { clock, onOutage });
    const turn = watch.engine.generate(request);
    await pass(4_000);
    state.isThere = false;
    await pass(15_000);
    expect(outages).toEqual([{ type: "engine-unreachable", silentMs: 5_000, atMs: 5_000 }]);
    await pass(60_000);
    expect(outages[1]).toEqual({ type: "engine-unreachable", silentMs: 65_000, atMs: 65_000 });
    answer.resolve();
    expect(await turn).toBe(generation);
    expect(outages[2]).toEqual({ type: "engine-back", silentMs: 79_000, atMs: 79_000 });
    expect(outages).toHaveLength(3);
  });

  test("takes an engine that fails with another error for unreachable", async () => {
    const { clock, pass } = standingClock();
    const { answer, engine } = wayward();
    const outages: EngineOutage[] = [];
    const broken = { ...engine, describe: () => Promise.reject(new TypeError("fetch failed")) };
    {
      await using watch = watchEngine(broken, { clock, onOutage: (each) => outages.push(each) });
      const turn = watch.engine.generate(request);
      await pass(15_000);
      answer.resolve();
      await turn;
    }
    expect(outages.map(({ type }) => type)).toEqual(["engine-unreachable", "engine-back"]);
  });

  test("waits for no engine that does not heed its signal", async () => {
    const { clock, pass } = standingClock();
    const { answer, engine } = wayward();
    const outages: EngineOutage[] = [];
    const silent = { ...engine, describe: () => new Promise<never>(() => {}) };
    {
      await using watch = watchEngine(silent, { clock, onOutage: (each) => outages.push(each) });
      const turn = watch.engine.generate(request);
      await pass(20_000);
      expect(outages.map(({ type }) => type)).toEqual(["engine-unreachable"]);
      answer.resolve();
      await turn;
    }
    expect(outages.map(({ type }) => type)).toEqual(["engine-unreachable", "engine-back"]);
  });

  test("does not report long turns, and sends no probe while no call waits", async () => {
    const { clock, pass } = standingClock();
    const { answer, state, engine } = wayward();
    const outages: EngineOutage[] = [];
    await using watch = watchEngine(engine, { clock, onOutage: (each) => outages.push(each) });
    await pass(600_000);
    expect(state.probeCount).toBe(0);
    const turn = watch.engine.generate(request);
    await pass(600_000);
    answer.resolve();
    await turn;
    expect(state.probeCount).toBeGreaterThan(0);
    expect(outages).toEqual([]);
  });

  test("an error of a listener is thrown at the end, and is not a failure of the engine", async () => {
    const fails = (): never => {
      throw new TypeError("the pager is away");
    };
    for (const fail of [fails, () => Promise.reject(new TypeError("the pager is away"))]) {
      const { clock, pass } = standingClock();
      const { answer, state, engine } = wayward();
      let reportCount = 0;
      const onOutage = (): void => {
        reportCount += 1;
        return fail() as never;
      };
      const watch = watchEngine(engine, { clock, onOutage });
      const turn = watch.engine.generate(request);
      await pass(4_000);
      state.isThere = false;
      await pass(15_000);
      answer.resolve();
      expect(await turn).toBe(generation);
      expect(reportCount).toBe(2);
      await expect(watch[Symbol.asyncDispose]()).rejects.toThrow(
        "Cannot report the state of the engine (engine-unreachable): the pager is away",
      );
    }
  });
});
