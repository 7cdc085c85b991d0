import { describe, expect, test } from "vitest";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import type { SglangEngineOptions } from "../../src/engine/sglang/sglang-options.ts";
import type { SglangTestServerOptions } from "../../src/testing/index.ts";
import {
  createManualClock,
  createScriptedPolicy,
  startSglangTestRouter,
  startSglangTestServer,
} from "../../src/testing/index.ts";
import { discardedBy, failureOf, toRequest } from "./request.ts";
import { underTest } from "./under-test.ts";
import { gatedPolicy, stuckPolicy } from "./waiting-policies.ts";

const TIMEOUTS = { requestMs: 30_000, turnMs: 90_000, controlMs: 7_000, connectMs: 5_000 };

const stuck = stuckPolicy(10, 11);

async function start(
  serverOptions: SglangTestServerOptions,
  engineOptions: Partial<SglangEngineOptions> = {},
) {
  return underTest(
    await startSglangTestServer(serverOptions),
    (connection) =>
      createSglangEngine({ ...connection, mode: "direct", timeouts: TIMEOUTS, ...engineOptions }),
    createManualClock(),
  );
}

describe("cancelling", () => {
  test("a running request is aborted at the engine by its id, and its connection dropped", async () => {
    await using tested = await start({ policy: stuck });
    const { server, engine } = tested;
    const controller = new AbortController();
    const call = engine.generate(toRequest(), { signal: controller.signal });
    await server.until(({ stats }) => stats.runningCount === 1);
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    expect(server.stats).toMatchObject({ abortCount: 1, generateCount: 1 });
    await server.until(({ stats }) => stats.finished.abort === 1);
    expect(server.requests[0]).toMatchObject({ rid: "0.5-0~a", outputIds: [10, 11] });
  });

  test("through a router only the dropped connection aborts the request", async () => {
    await using tested = await start({ policy: stuck });
    await using router = await startSglangTestRouter({ workers: [tested.server.url] });
    const engine = createSglangEngine({ url: router.url, mode: "router" });
    const controller = new AbortController();
    const call = engine.generate(toRequest(), { signal: controller.signal });
    await tested.server.until(({ stats }) => stats.runningCount === 1);
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    await tested.server.until(({ stats }) => stats.finished.abort === 1);
    expect(tested.server.stats.abortCount).toBe(0);
    await engine.close();
  });

  test("in mode `auto` a router's 404 counts as an answer, once", async () => {
    await using tested = await start({ policy: stuck });
    await using router = await startSglangTestRouter({ workers: [tested.server.url] });
    const engine = createSglangEngine({ url: router.url });
    for (const requestCount of [1, 2]) {
      const controller = new AbortController();
      const call = engine.generate(toRequest(), { signal: controller.signal });
      await tested.server.until(({ requests }) => requests.length === requestCount);
      controller.abort(new Error("enough"));
      await expect(call).rejects.toThrow("enough");
    }
    expect(router.stats.unknownPathCount).toBe(1);
    await engine.close();
  });

  test("during back-off ends the wait and sends no more requests", async () => {
    await using tested = await start({ faults: [{ kind: "status", status: 503 }] });
    const controller = new AbortController();
    const call = tested.engine.generate(toRequest(), { signal: controller.signal });
    await tested.clock.untilSleeping(187.5);
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    expect(tested.server.stats).toMatchObject({ generateCount: 1, abortCount: 0 });
    expect(tested.clock.pendingCount).toBe(0);
  });

  test("a held request is dropped, and never runs", async () => {
    await using tested = await start({ policy: createScriptedPolicy([]) });
    await tested.server.pause("abort");
    const controller = new AbortController();
    const call = tested.engine.generate(toRequest(), { signal: controller.signal });
    await tested.server.until(({ stats }) => stats.heldCount === 1);
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    await tested.server.until(({ stats }) => stats.heldCount === 0);
    tested.server.continue();
    expect(tested.server.stats).toMatchObject({ runningCount: 0, waitingCount: 0 });
    expect(tested.server.problems).toEqual([]);
  });

  test("a request that waited for a connection was never sent, and is not reported", async () => {
    await using tested = await start({ policy: stuck }, { maxConnections: 1 });
    const first = new AbortController();
    const second = new AbortController();
    const calls = [first, second].map(({ signal }, index) =>
      tested.engine.generate(toRequest({ requestId: `${index}` }), { signal }),
    );
    const outcomes = Promise.allSettled(calls);
    await tested.server.until(({ stats }) => stats.runningCount === 1);
    second.abort(new Error("enough"));
    await expect(calls[1]).rejects.toThrow("enough");
    expect(tested.server.stats).toMatchObject({ generateCount: 1, abortCount: 0 });
    first.abort(new Error("enough"));
    await outcomes;
    expect(tested.server.stats).toMatchObject({ generateCount: 1, abortCount: 1 });
  });

  test("stops waiting for the abort when the engine does not answer", async () => {
    const policy = createScriptedPolicy([]);
    await using tested = await start({ policy, faults: [{ kind: "hang" }], hangsOnAbort: true });
    const controller = new AbortController();
    const call = tested.engine.generate(toRequest(), { signal: controller.signal });
    await tested.server.until(({ stats }) => stats.generateCount === 1);
    const cancelled = expect(call).rejects.toThrow("enough");
    controller.abort(new Error("enough"));
    await tested.clock.untilSleeping(TIMEOUTS.controlMs);
    await tested.clock.advance(TIMEOUTS.controlMs);
    await cancelled;
    expect(tested.clock.pendingCount).toBe(0);
  });
});

describe("deadlines", () => {
  test("a request without a timely answer is aborted, recorded, and sent again", async () => {
    const turns = [{ outputIds: [10, 2] }];
    await using tested = await start({
      policy: createScriptedPolicy(turns),
      faults: [{ kind: "hang" }],
    });
    const call = tested.engine.generate(toRequest());
    await tested.server.until(({ stats }) => stats.generateCount === 1);
    await tested.clock.advance(30_000);
    await tested.clock.untilSleeping(187.5);
    await tested.clock.advance(187.5);
    const generation = await call;
    expect(generation.outputIds).toEqual([10, 2]);
    expect(generation.discarded).toEqual([{ requestId: "a", reason: "no answer within 30000 ms" }]);
    expect(tested.server.stats.abortCount).toBe(1);
    expect(tested.clock.pendingCount).toBe(0);
  });

  test("after the last attempt it fails as `engine/timeout`, not to be retried", async () => {
    await using tested = await start({ faults: [{ kind: "hang" }] }, { retry: { maxAttempts: 1 } });
    const call = failureOf(tested.engine.generate(toRequest()));
    await tested.server.until(({ stats }) => stats.generateCount === 1);
    await tested.clock.advance(30_000);
    expect(await call).toEqual({
      code: "engine/timeout",
      retryable: false,
      message:
        `Cannot sample request a at ${tested.server.url}: no answer within 30000 ms, ` +
        "expected one in time",
    });
  });

  test("the turn's own deadline ends it, with any number of attempts left", async () => {
    await using tested = await start(
      { faults: () => ({ kind: "hang" }) },
      { timeouts: { ...TIMEOUTS, requestMs: 90_000, turnMs: 60_000 } },
    );
    const turn = tested.engine.generate(toRequest());
    const call = failureOf(turn);
    const discarded = discardedBy(turn);
    await tested.server.until(({ stats }) => stats.generateCount === 1);
    await tested.clock.advance(60_000);
    expect(await discarded).toEqual([
      { requestId: "a", reason: "the turn was over before the answer came" },
    ]);
    expect(await call).toEqual({
      code: "engine/timeout",
      retryable: false,
      message:
        `Cannot sample at ${tested.server.url}: ` +
        "the turn took longer than 60000 ms, expected it to end in time",
    });
    expect(tested.server.stats.abortCount).toBe(1);
    expect(tested.clock.pendingCount).toBe(0);
  });

  test("leaves no timer after an ordinary turn", async () => {
    await using tested = await start({});
    await tested.engine.generate(toRequest());
    expect(tested.clock.pendingCount).toBe(0);
    expect(tested.clock.sleeps).toEqual([90_000, 30_000]);
  });
});

describe("a paused engine", () => {
  test("holds requests, and answers them when the server continues", async () => {
    const policy = createScriptedPolicy([{ outputIds: [10, 2] }]);
    await using tested = await start({ policy });
    await tested.server.pause("abort");
    const call = tested.engine.generate(toRequest());
    await tested.server.until(({ stats }) => stats.heldCount === 1);
    await tested.clock.advance(29_999);
    tested.server.setWeightVersion("8");
    tested.server.continue();
    expect(await call).toMatchObject({
      outputIds: [10, 2],
      pieces: [{ requestId: "a", policyVersion: "8" }],
      discarded: [],
    });
  });

  test("resumes an aborted turn with the new version when the server continues", async () => {
    const outputIds = [10, 11, 12, 13, 2];
    const { policy, atGate, open } = gatedPolicy(outputIds, { resumes: true });
    await using tested = await start({ policy });
    const { server, engine, clock } = tested;
    server.setWeightVersion("7");
    const call = engine.generate(toRequest());
    await atGate;
    await server.pause("abort");
    server.setWeightVersion("8");
    await clock.untilSleeping(250);
    await clock.advance(250);
    await server.until(({ stats }) => stats.heldCount === 1);
    open();
    server.continue();
    const generation = await call;
    expect(generation.outputIds).toEqual(outputIds);
    expect(generation.logprobs).toEqual([-10, -11, -12, -13, -2]);
    expect(generation.pieces).toEqual([
      { requestId: "a", tokenCount: 2, policyVersion: "7", finish: "abort" },
      { requestId: "r1~a", tokenCount: 3, policyVersion: "8", finish: "stop" },
    ]);
  });
});
