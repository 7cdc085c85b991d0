import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Engine, Generation } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { systemClock } from "../async/clock.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { WeightControl } from "./policy-weights.ts";
import { caller, lampEngine, openLamps, twoLamps } from "./lamp-service.fixture.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-service-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

interface Group {
  readonly attempts: readonly {
    readonly rolloutId: string;
    readonly outcome: string;
    readonly reward?: number;
    readonly rows: readonly {
      readonly policyVersions: readonly string[];
      readonly lossMask: readonly number[];
    }[];
  }[];
}

function groupsOf(body: unknown): readonly Group[] {
  return (body as readonly string[])
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { readonly group: Group }).group);
}

function versionsOf(groups: readonly Group[]): readonly string[] {
  const rows = groups.flatMap(({ attempts }) => attempts.flatMap((attempt) => attempt.rows));
  return [
    ...new Set(
      rows.flatMap(({ policyVersions, lossMask }) =>
        policyVersions.filter((_, index) => lossMask[index] === 1),
      ),
    ),
  ];
}

function weightControl(load: WeightControl["load"]): WeightControl {
  return { load, have: () => Promise.resolve(false) };
}

/** An engine that names the version that it has with each piece. */
function lampEngineThatHas(version: () => string): Engine {
  const engine = lampEngine();
  return {
    ...engine,
    async generate(...call) {
      const generation = await engine.generate(...call);
      const pieces = generation.pieces.map((piece) => ({ ...piece, policyVersion: version() }));
      return { ...generation, pieces };
    },
  };
}

/**
 * Samples the first half of each turn, then waits for an interruption; returns the rest at once.
 */
function halting(): { readonly engine: Engine; readonly isHalted: Promise<void> } {
  const halted = withResolvers();
  const inner = lampEngine();
  return {
    isHalted: halted.promise,
    engine: {
      ...inner,
      async generate(request, options): Promise<Generation> {
        const whole = await inner.generate(request, options);
        const isRest = request.requestId.endsWith("w1;");
        const half = whole.outputIds.length >> 1;
        const outputIds = isRest ? whole.outputIds.slice(half) : whole.outputIds.slice(0, half);
        const { cutShort } = options ?? {};
        if (!isRest) {
          halted.resolve();
          await new Promise((resolve) => cutShort?.addEventListener("abort", resolve));
        }
        const [piece] = whole.pieces;
        return {
          ...whole,
          outputIds,
          logprobs: outputIds.map(() => -0.5),
          finish: isRest ? whole.finish : { type: "length" },
          pieces: [{ ...piece!, tokenCount: outputIds.length, finish: isRest ? "stop" : "abort" }],
        };
      },
    },
  };
}

describe("steering the service", () => {
  test("each token carries the version that was announced before it was sampled", async () => {
    const { engine, isHalted } = halting();
    const loaded: string[] = [];
    await using service = await openLamps(dir, {
      engine,
      weights: weightControl(async ({ path, version }) => void loaded.push(`${path}@${version}`)),
    });
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 12 });
    await call("POST", "/v1/batches", { ...twoLamps, tasks: [1], samples: 1 });
    await isHalted;
    const announced = await call("POST", "/v1/policy", { version: 13, weights: "/step-13" });
    expect(announced.body).toEqual({ policyVersion: 13 });
    const groups = groupsOf((await call("GET", "/v1/groups?batch=b1")).body);
    expect(versionsOf(groups)).toEqual(["12", "13"]);
    await call("POST", "/v1/policy", { version: 13, weights: "/step-13" });
    expect(loaded).toEqual(["/step-13@13"]);
    for (const body of [{ version: 12 }, { version: 13, weights: "/other" }, { version: 13 }]) {
      const refused = await call("POST", "/v1/policy", body);
      expect([refused.status, refused.body]).toMatchObject([
        409,
        { error: { code: "version-not-newer" } },
      ]);
    }
  });

  test("a restarted trainer returns to an earlier version, once no earlier batch is played", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 8 });
    await call("POST", "/v1/pause", {});
    await call("POST", "/v1/batches", twoLamps);
    const back = { version: 5, restart: true };
    const busy = await call("POST", "/v1/policy", back);
    expect([busy.status, busy.body]).toMatchObject([
      409,
      {
        error: {
          code: "version-not-newer",
          message: expect.stringContaining("cancel them before it goes back to 5") as string,
        },
      },
    ]);
    await call("DELETE", "/v1/batches/b1");
    expect((await call("POST", "/v1/policy", { version: 5 })).status).toBe(409);
    expect((await call("POST", "/v1/policy", { version: 5, restart: 1 })).status).toBe(400);
    expect((await call("POST", "/v1/policy", back)).body).toEqual({ policyVersion: 5 });
    expect((await call("POST", "/v1/policy", back)).body).toEqual({ policyVersion: 5 });
    await call("POST", "/v1/resume", {});
    await call("POST", "/v1/batches", { ...twoLamps, key: "again" });
    expect(versionsOf(groupsOf((await call("GET", "/v1/groups?batch=b2")).body))).toEqual(["5"]);
    await service[Symbol.asyncDispose]();
    await using next = await openLamps(dir);
    expect(next.health.policyVersion).toBe(5);
  });

  test("weights that the engine refuses keep the version, and sampling continues", async () => {
    await using service = await openLamps(dir, {
      weights: weightControl(async () => {
        throw new RolloutError("engine/server-error", "Cannot load /bad: no such folder");
      }),
    });
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 1 });
    const refused = await call("POST", "/v1/policy", { version: 2, weights: "/bad" });
    expect([refused.status, refused.body]).toEqual([
      502,
      { error: { code: "engine-failed", message: "Cannot load /bad: no such folder" } },
    ]);
    expect(service.health.policyVersion).toBe(1);
    await call("POST", "/v1/batches", twoLamps);
    expect(versionsOf(groupsOf((await call("GET", "/v1/groups?batch=b1")).body))).toEqual(["1"]);
  });

  test("invalid weights are refused before sampling is paused or a file is loaded", async () => {
    const loaded: string[] = [];
    await using service = await openLamps(dir, {
      weights: {
        ...weightControl(async ({ path }) => void loaded.push(path)),
        findProblem: ({ path }) =>
          path === "/down"
            ? Promise.reject(new RolloutError("engine/unreachable", "Cannot reach the engine"))
            : Promise.resolve(path === "/torn" ? "Cannot load /torn: it ends early" : undefined),
      },
    });
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 1, weights: "/step-1" });
    const refused = await call("POST", "/v1/policy", { version: 2, weights: "/torn" });
    const message = `"weights" is wrong: Cannot load /torn: it ends early`;
    expect([refused.status, refused.body]).toEqual([
      400,
      { error: { code: "bad-request", message } },
    ]);
    expect((await call("POST", "/v1/policy", { version: 2, weights: "/down" })).status).toBe(502);
    expect(service.health).toMatchObject({ state: "running", policyVersion: 1 });
    expect(loaded).toEqual(["/step-1"]);
  });

  test("turns of a server that lost its weights are sampled again after it has reloaded them", async () => {
    let has = "default";
    const loaded: string[] = [];
    await using service = await openLamps(dir, {
      engine: lampEngineThatHas(() => has),
      attempts: 3,
      weights: {
        ...weightControl(async ({ path, version }) => {
          loaded.push(`${path}@${version}`);
          has = version;
        }),
        namesVersions: true,
      },
    });
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 4, weights: "/step-4" });
    // As if another program started it again.
    has = "default";
    await call("POST", "/v1/batches", { ...twoLamps, tasks: [1], samples: 1 });
    const groups = groupsOf((await call("GET", "/v1/groups?batch=b1")).body);
    expect(versionsOf(groups)).toEqual(["4"]);
    expect(loaded).toEqual(["/step-4@4", "/step-4@4"]);
    // If the caller manages the weights, the engine's own name for them does not matter.
    await call("POST", "/v1/policy", { version: 5 });
    has = "mine";
    await call("POST", "/v1/batches", { ...twoLamps, key: "own", tasks: [1], samples: 1 });
    expect(versionsOf(groupsOf((await call("GET", "/v1/groups?batch=b2")).body))).toEqual(["5"]);
    expect(loaded).toHaveLength(2);
  });

  test("sampling stays paused if a server that lost the weights cannot reload them", async () => {
    let has = "default";
    let isBroken = false;
    await using service = await openLamps(dir, {
      engine: lampEngineThatHas(() => has),
      weights: {
        ...weightControl(async ({ version }) => {
          if (isBroken) throw new RolloutError("engine/mixed-weights", "b has others");
          has = version;
        }),
        namesVersions: true,
      },
    });
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 4, weights: "/step-4" });
    [has, isBroken] = ["default", true];
    await call("POST", "/v1/batches", { ...twoLamps, tasks: [1], samples: 1 });
    while (service.health.state !== "paused") await new Promise((resolve) => setImmediate(resolve));
    expect((await call("POST", "/v1/resume")).status).toBe(502);
    isBroken = false;
    expect((await call("POST", "/v1/policy", { version: 5, weights: "/step-5" })).status).toBe(200);
    expect((await call("POST", "/v1/resume")).status).toBe(200);
  });

  test("servers with different weights sample nothing before all have loaded the same", async () => {
    const mixed = new RolloutError("engine/mixed-weights", "b could not be given back what it had");
    let failure: RolloutError | undefined = mixed;
    const weights = weightControl(async () => {
      if (failure !== undefined) throw failure;
    });
    {
      await using service = await openLamps(dir, { weights });
      const call = caller(service);
      expect((await call("POST", "/v1/policy", { version: 2, weights: "/w" })).status).toBe(502);
      expect(service.health).toMatchObject({ state: "paused", policyVersion: null });
      expect((await call("POST", "/v1/resume")).status).toBe(502);
    }
    // The next start notifies all servers again, and does not start while that fails.
    await expect(openLamps(dir, { weights })).rejects.toThrow(
      "Cannot continue with the policy's version 2: b could not be given back what it had",
    );
    failure = undefined;
    await using service = await openLamps(dir, { weights });
    expect(service.health).toMatchObject({ state: "paused", policyVersion: 2 });
  });

  test("a restarted engine gets the last announced weights before it samples", async () => {
    const loaded: string[] = [];
    const weights = weightControl(
      async ({ path, version }) => void loaded.push(`${path}@${version}`),
    );
    {
      await using service = await openLamps(dir, { weights });
      await caller(service)("POST", "/v1/policy", { version: 3, weights: "/step-3" });
    }
    {
      await using _service = await openLamps(dir, { weights });
      expect(loaded).toEqual(["/step-3@3", "/step-3@3"]);
    }
    const has = { ...weights, have: () => Promise.resolve(true) };
    await using service = await openLamps(dir, { weights: has });
    expect(loaded).toHaveLength(2);
    const call = caller(service);
    await call("POST", "/v1/batches", twoLamps);
    expect(versionsOf(groupsOf((await call("GET", "/v1/groups?batch=b1")).body))).toEqual(["3"]);
  });

  test("an engine without weight loading reports that", async () => {
    await using service = await openLamps(dir);
    const refused = await caller(service)("POST", "/v1/policy", { version: 2, weights: "/w" });
    expect(refused.status).toBe(400);
    expect(service.health.policyVersion).toBe(null);
  });

  test("a batch waits for the policy's version; others do not wait for it", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/batches", { ...twoLamps, key: "later", minPolicyVersion: 2 });
    await call("POST", "/v1/batches", twoLamps);
    await call("GET", "/v1/groups?batch=b2");
    expect((await call("GET", "/v1/batches/b1")).body).toMatchObject({ state: "queued" });
    await call("POST", "/v1/policy", { version: 2 });
    expect(versionsOf(groupsOf((await call("GET", "/v1/groups?batch=b1")).body))).toEqual(["2"]);
  });

  test("a pause stops all sampling, and both calls may be repeated", async () => {
    let asked = 0;
    await using service = await openLamps(dir, { engine: lampEngine(() => (asked += 1)) });
    const call = caller(service);
    for (let each = 0; each < 2; each++) {
      expect((await call("POST", "/v1/pause")).body).toEqual({ state: "paused" });
    }
    await call("POST", "/v1/batches", twoLamps);
    await call("POST", "/v1/policy", { version: 4 });
    expect([asked, service.health.state]).toEqual([0, "paused"]);
    for (let each = 0; each < 2; each++) {
      expect((await call("POST", "/v1/resume", {})).body).toEqual({ state: "running" });
    }
    await call("GET", "/v1/groups?batch=b1");
    expect(asked).toBe(4);
  });

  test("cancelling stops attempts in progress, and keeps the finished groups", async () => {
    const engine = lampEngine(async ({ sessionId }, { signal } = {}) => {
      if (!sessionId.startsWith("lamp/test/7")) return;
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    await using service = await openLamps(dir, { engine });
    const call = caller(service);
    await call("POST", "/v1/batches", twoLamps);
    while (service.groups.lastCursor === 0) await new Promise((resolve) => setImmediate(resolve));
    const cancelled = { batch: "b1", state: "cancelled", finishedGroups: 1 };
    expect((await call("DELETE", "/v1/batches/b1")).body).toMatchObject(cancelled);
    const lines = (await call("GET", "/v1/groups?batch=b1")).body as readonly string[];
    expect(lines.length).toBe(2);
    expect(JSON.parse(lines[1]!)).toEqual({ type: "end", cursor: 1, state: "cancelled" });
    expect(service.health.runningAttempts).toBe(0);
    expect((await call("DELETE", "/v1/batches")).body).toMatchObject({ batches: [cancelled] });
  });

  test("clearing aborts and forgets the batches with one prefix, and no others", async () => {
    const engine = lampEngine(async ({ sessionId }, { signal } = {}) => {
      if (!sessionId.startsWith("lamp/test/7")) return;
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    await using service = await openLamps(dir, { engine, concurrency: 50 });
    const call = caller(service);
    for (const key of ["old/1", "old/2", "older/1", "other/old/1"]) {
      const tasks = key === "old/2" ? [4, 7] : [4];
      await call("POST", "/v1/batches", { ...twoLamps, key, tasks });
    }
    // A consumer that takes groups itself has keys of its own.
    const kept = { ...twoLamps, key: "old/3", tasks: [4], seed: 0, sampling: {} };
    await service.submit(kept, "agent-lightning");
    // All but the held batch and the batch of the absent consumer.
    const ended = () => service.batches.filter(({ state }) => state === "finished").length;
    while (service.groups.lastCursor < 4 || ended() < 3) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const cancelledBatches of [1, 0]) {
      const { status, body } = await call("POST", "/v1/clear", { keyPrefix: "old/" });
      expect([status, body]).toEqual([200, { keyPrefix: "old/", cancelledBatches }]);
    }
    const states = service.batches.map(({ key, state }) => [key, state]);
    expect(states).toContainEqual(["old/1", "finished"]);
    expect(states).toContainEqual(["old/2", "cancelled"]);
    expect(states).toContainEqual(["old/3", "queued"]);
    expect((await call("GET", "/v1/groups?batch=b1")).body).toMatchObject({
      error: { code: "cursor-gone" },
    });
    for (const id of ["b3", "b4"]) {
      const read = groupsOf((await call("GET", `/v1/groups?batch=${id}`)).body);
      expect(read).toHaveLength(1);
    }
    for (const wrong of [
      {},
      { keyPrefix: "" },
      { keyPrefix: 7 },
      { keyPrefix: "old/", all: true },
    ]) {
      const { status, body } = await call("POST", "/v1/clear", wrong);
      expect([status, body]).toMatchObject([400, { error: { code: "bad-request" } }]);
    }
  });

  test("after its deadline a batch delivers its finished groups, and reports the rest as aborted", async () => {
    let timer: { readonly ms: number; readonly callback: () => void } | undefined;
    const after = (ms: number, callback: () => void) => {
      timer = { ms, callback };
      return () => {};
    };
    const clock = { ...systemClock, after };
    const halted = withResolvers();
    const engine = lampEngine(async ({ sessionId }, { signal } = {}) => {
      if (sessionId !== "lamp/test/7#1") return;
      halted.resolve();
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    await using service = await openLamps(dir, { engine, clock, concurrency: 1 });
    const call = caller(service);
    await call("POST", "/v1/batches", { ...twoLamps, deadlineS: 60 });
    await halted.promise;
    expect(timer?.ms).toBe(60_000);
    timer!.callback();
    const groups = groupsOf((await call("GET", "/v1/groups?batch=b1")).body);
    const attempts = groups.flatMap((group) => group.attempts);
    expect(
      attempts.map(({ rolloutId, outcome, reward, rows }) => [
        rolloutId,
        outcome,
        reward,
        rows.length,
      ]),
    ).toEqual([
      ["lamp/test/4#0", "completed", 0, 1],
      ["lamp/test/4#1", "completed", 0, 1],
      ["lamp/test/7#0", "completed", 0, 1],
      ["lamp/test/7#1", "aborted", undefined, 0],
    ]);
    expect(service.batch("b1").state).toBe("finished");
  });
});
