import { describe, expect, test } from "vitest";
import { RolloutError } from "../../errors.ts";
import type { EngineLoad, WorkerLoad } from "../../engine/engine.ts";
import type { AdmissionGate } from "../start-run-options.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { type EngineGate, createAdmissionGate } from "./admission.ts";

const { signal } = new AbortController();

const outage = (): RolloutError => new RolloutError("engine/unreachable", "no server answers");

/** Requests admission, and records when it is granted. */
function ask(gate: EngineGate, name: string, priority: number, order: string[]) {
  return gate.admit({ priority, signal }).then((leave) => {
    order.push(name);
    return leave;
  });
}

describe("an admission gate", () => {
  test("admits a limited number at once, the oldest group first, and within one in order", async () => {
    await using gate = createAdmissionGate({ concurrency: 2 });
    const order: string[] = [];
    const first = [ask(gate, "b1", 1, order), ask(gate, "c1", 2, order)];
    const later = [
      ask(gate, "c2", 2, order),
      ask(gate, "b2", 1, order),
      ask(gate, "a1", 0, order),
      ask(gate, "b3", 1, order),
    ];
    const leaves = await Promise.all(first);
    expect(gate.state).toEqual({ admitted: 2, waiting: 4, limit: 2 });
    for (const leave of leaves) leave();
    for (const entered of [later[2], later[1], later[3], later[0]]) (await entered)!();
    expect(order).toEqual(["b1", "c1", "a1", "b2", "b3", "c2"]);
    expect(gate.state).toEqual({ admitted: 0, waiting: 0, limit: 2 });
  });

  test("releases a place once, even if it is called several times", async () => {
    await using gate = createAdmissionGate({ concurrency: 1 });
    const leave = await gate.admit({ priority: 0, signal });
    leave();
    leave();
    expect(gate.state.admitted).toBe(0);
  });

  test("removes a request that aborts, and throws the signal's reason", async () => {
    await using gate = createAdmissionGate({ concurrency: 1 });
    const leave = await gate.admit({ priority: 0, signal });
    const controller = new AbortController();
    const waiting = gate.admit({ priority: 0, signal: controller.signal });
    const refused = expect(waiting).rejects.toThrow("enough");
    controller.abort(new Error("enough"));
    await refused;
    expect(gate.state).toEqual({ admitted: 1, waiting: 0, limit: 1 });
    leave();
    await expect(gate.admit({ priority: 0, signal: controller.signal })).rejects.toThrow();
    expect(gate.state.admitted).toBe(0);
  });
});

test("is one that a run can be given", async () => {
  const gate: AdmissionGate = createAdmissionGate({ concurrency: 1 });
  const leave = await gate.admit({ priority: 0, signal });
  expect(leave()).toBeUndefined();
});

describe("a gate that follows the engine's load", () => {
  const idle: WorkerLoad = { runningCount: 8, waitingCount: 0, keyValueUse: 0.2 };

  /** Plays readings, one a second, and gives the limit after each. */
  async function limitsAfter(
    readings: readonly (readonly WorkerLoad[] | Error)[],
    concurrency = 64,
  ): Promise<readonly number[]> {
    const clock = createManualClock();
    const left = [...readings];
    const read = async (): Promise<EngineLoad> => {
      const next = left.shift();
      if (next === undefined || next instanceof Error) throw next ?? outage();
      return { workers: next, silent: [] };
    };
    await using gate = createAdmissionGate({ concurrency, follow: { read, clock } });
    const limits: number[] = [];
    for (let second = 0; second < readings.length; second++) {
      await clock.untilSleeping(1_000);
      await clock.advance(1_000);
      await clock.untilSleeping(1_000);
      limits.push(gate.state.limit);
    }
    return limits;
  }

  test("admits fewer while keys and values fill the memory, and more again with room", async () => {
    const full = { ...idle, keyValueUse: 0.95 };
    const between = { ...idle, keyValueUse: 0.8 };
    expect(await limitsAfter([[full], [full], [between], [idle], [idle]])).toEqual([
      56, 49, 49, 53, 57,
    ]);
  });

  test("admits fewer while the queue is long", async () => {
    const queued = { ...idle, waitingCount: 4 };
    expect(await limitsAfter([[queued], [{ ...idle, waitingCount: 1 }]])).toEqual([56, 60]);
  });

  test("follows the fullest worker", async () => {
    expect(await limitsAfter([[idle, { ...idle, keyValueUse: 1 }, idle]])).toEqual([56]);
  });

  test("goes down to one and up to its concurrency, and no further", async () => {
    const full = { ...idle, keyValueUse: 1 };
    const down = await limitsAfter(Array.from({ length: 40 }, () => [full]));
    expect(down.at(-1)).toBe(1);
    expect(await limitsAfter([[full], [idle], [idle], [idle]], 8)).toEqual([7, 8, 8, 8]);
  });

  test("keeps the limit if the load is unknown or a reading fails", async () => {
    const full = { ...idle, keyValueUse: 1 };
    const broken = new TypeError("fetch failed");
    const odd = undefined as never;
    const readings = [[full], outage(), broken, [odd], [], [{ runningCount: 0 }]];
    expect(await limitsAfter(readings)).toEqual([56, 56, 56, 56, 56, 60]);
  });

  test("is disposed of at once, even if an engine does not answer", async () => {
    const clock = createManualClock();
    const asked = withResolvers();
    const read = async (): Promise<EngineLoad> => {
      asked.resolve();
      return await new Promise(() => {});
    };
    {
      await using _gate = createAdmissionGate({ concurrency: 2, follow: { read, clock } });
      await clock.untilSleeping(1_000);
      await clock.advance(1_000);
      await asked.promise;
    }
    expect.assertions(0);
  });

  test("abandons a reading without an answer, and asks again", async () => {
    const clock = createManualClock();
    const full = { ...idle, keyValueUse: 1 };
    let readings = 0;
    const read = async (): Promise<EngineLoad> => {
      readings += 1;
      if (readings === 1) await new Promise(() => {});
      return { workers: [full], silent: [] };
    };
    const follow = { read, clock, readingMs: 7_000 };
    await using gate = createAdmissionGate({ concurrency: 64, follow });
    await clock.untilSleeping(1_000);
    await clock.advance(1_000);
    await clock.untilSleeping(7_000);
    await clock.advance(7_000);
    await clock.untilSleeping(1_000);
    expect(gate.state.limit).toBe(64);
    await clock.advance(1_000);
    await clock.untilSleeping(1_000);
    expect(gate.state.limit).toBe(56);
  });

  test("admits waiting requests when the limit rises, and stops none when it falls", async () => {
    const clock = createManualClock();
    let load: WorkerLoad = { ...idle, keyValueUse: 1 };
    const read = async (): Promise<EngineLoad> => ({ workers: [load], silent: [] });
    await using gate = createAdmissionGate({ concurrency: 2, follow: { read, clock } });
    const tick = async (): Promise<void> => {
      await clock.untilSleeping(1_000);
      await clock.advance(1_000);
      await clock.untilSleeping(1_000);
    };
    const order: string[] = [];
    const [leave] = await Promise.all([ask(gate, "a", 0, order), ask(gate, "b", 0, order)]);
    await tick();
    expect(gate.state).toEqual({ admitted: 2, waiting: 0, limit: 1 });
    leave();
    const waiting = ask(gate, "c", 0, order);
    await tick();
    expect(gate.state).toEqual({ admitted: 1, waiting: 1, limit: 1 });
    load = idle;
    await tick();
    await waiting;
    expect(order).toEqual(["a", "b", "c"]);
  });
});
