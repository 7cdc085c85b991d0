import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RolloutError } from "../../errors.ts";
import { systemClock } from "../../async/clock.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { Taker } from "../batch-taker.ts";
import { inventedRoutes } from "../../testing/column-engine.ts";
import { caller, columnSetup, lampEngine, openLamps } from "../lamp-service.fixture.ts";
import { AglBridge, aglTaker } from "./agl-bridge.ts";
import { startAglServer, type AglServer } from "./agl-server.fixture.ts";
import { AglError, AglStore } from "./agl-store.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-agl-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function open(
  server: AglServer,
  {
    attempt = "tw",
    key,
    claim = async (ask) => await ask(),
    ...options
  }: Parameters<typeof openLamps>[1] & {
    readonly attempt?: string;
    readonly key?: string;
    /** The result of a claim; `taking` resolves once a played rollout is delivered. */
    readonly claim?: (ask: () => Promise<boolean>, taking: Promise<void>) => Promise<boolean>;
  } = {},
) {
  const notes: string[] = [];
  const taking = withResolvers();
  const store = new (class extends AglStore {
    override async claim(...asked: Parameters<AglStore["claim"]>): Promise<boolean> {
      return await claim(async () => await super.claim(...asked), taking.promise);
    }
  })({ url: server.url, attempt, ...(key !== undefined && { key }) });
  // Pauses are over at once.
  const clock = {
    ...systemClock,
    after: (_ms: number, end: () => void) => systemClock.after(0, end),
  };
  const bridge = new AglBridge({ store, model: "lamps", note: (text) => notes.push(text), clock });
  const { taker } = bridge;
  const take: Taker["take"] = async (...given) => {
    const taken = taker.take(...given);
    taking.resolve();
    await taken;
  };
  const takers = { [aglTaker]: { ...taker, take } };
  const service = await openLamps(dir, { ...options, takers });
  const working = bridge.work(service);
  return {
    service,
    notes,
    bridge,
    async [Symbol.asyncDispose]() {
      service.stop();
      await working;
      await service[Symbol.asyncDispose]();
    },
  };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1));
}

const hasEnded = (server: AglServer, id: string) => (): boolean =>
  ["succeeded", "failed"].includes(server.rollouts.get(id)!.status.state);

const routedExperts = { layerCount: 2, perToken: 2, expertCount: 256 };

interface Call {
  readonly response: {
    readonly prompt_token_ids: readonly number[];
    readonly choices: readonly [
      {
        readonly token_ids: readonly number[];
        readonly logprobs: { readonly content: readonly { readonly logprob: number }[] };
      },
    ];
  };
  readonly server: object;
}

describe("agent-lightning's store", () => {
  test("is given each call of the policy with its ids and logprobs, then the reward", async () => {
    await using server = await startAglServer("s3cret");
    server.add("r1", { task_index: 4, split: "test" });
    await using opened = await open(server, { key: "s3cret" });
    await caller(opened.service)("POST", "/v1/policy", { version: 7 });
    await until(hasEnded(server, "r1"));
    const { status } = server.rollouts.get("r1")!;
    expect(status).toMatchObject({
      state: "succeeded",
      last_attempt_id: "tw",
      error_message: null,
    });
    const events = server.events.get("r1")!;
    expect(events.at(-1)).toEqual({
      event_type: "reward",
      attempt: "tw",
      data: { value: 0, source: "turnwright" },
    });
    let seen: readonly number[] = [];
    for (const { event_type: type, data } of events.slice(0, -1)) {
      const { response, server: by } = data as Call;
      const [{ token_ids: ids, logprobs }] = response.choices;
      expect([type, by]).toMatchObject(["model_request", { model: "lamps" }]);
      expect(response.prompt_token_ids.slice(0, seen.length)).toEqual(seen);
      expect(logprobs.content).toHaveLength(ids.length);
      seen = [...response.prompt_token_ids, ...ids];
    }
    expect(events.length).toBeGreaterThan(1);
    expect(opened.service.health.unreadGroups).toBe(0);
  });

  test("is given the routes of a row", async () => {
    await using server = await startAglServer();
    server.add("r1", { task_index: 4, split: "test" });
    await using _opened = await open(server, { setup: columnSetup({ routedExperts }) });
    await until(hasEnded(server, "r1"));
    const [event] = server.events.get("r1")!;
    const { response, routed_experts: text } = event!.data as Call & {
      readonly routed_experts: string;
    };
    const ids = [...response.prompt_token_ids, ...response.choices[0].token_ids];
    const about = { from: 0, rows: ids.length - 1, policyVersion: "1", shape: routedExperts };
    const file = Buffer.from(text, "base64");
    expect(file.toString("latin1", 10, 128)).toContain(`'shape': (${ids.length - 1}, 2, 2)`);
    expect([...file.subarray(128)]).toEqual([...inventedRoutes(ids, about)]);
  });

  test("is notified of a rollout whose routes cannot be read", async () => {
    await using server = await startAglServer();
    server.add("r1", { task_index: 4, split: "test" });
    await using _opened = await open(server, {
      setup: columnSetup({ routedExperts }),
      async claim(ask, taking) {
        await taking;
        await rm(path.join(dir, "batches/b1/columns/start-0-0000.bin"));
        return await ask();
      },
    });
    await until(hasEnded(server, "r1"));
    expect(server.rollouts.get("r1")!.status).toMatchObject({
      state: "failed",
      error_message: expect.stringContaining("Cannot read the column part") as string,
    });
  });

  test("is notified of failed, timed-out and cancelled attempts and of unknown tasks, without events", async () => {
    await using server = await startAglServer();
    server.add("broken", { task_index: 1, split: "test" });
    server.add("nothing", { prompt: "hello" });
    server.add("nowhere", { task_index: 500, split: "test" });
    const engine = lampEngine(() => {
      throw new RolloutError("engine/timeout", "no answer");
    });
    await using _opened = await open(server, { engine });
    for (const [id, problem] of [
      ["broken", "failed: engine/timeout: no answer"],
      ["nothing", 'expected a "task_index"'],
      ["nowhere", "expected 0 to 49"],
    ] as const) {
      await until(hasEnded(server, id));
      expect(server.rollouts.get(id)!.status.state).toBe("failed");
      expect(server.rollouts.get(id)!.status.error_message).toContain(problem);
      expect(server.events.get(id)).toEqual([]);
    }
  });

  test("a batch that is cancelled fails its rollout", async () => {
    await using server = await startAglServer();
    server.add("r1", { task_index: 4, split: "test" });
    const playing = withResolvers();
    const engine = lampEngine(async (_request, { signal } = {}) => {
      playing.resolve();
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    await using opened = await open(server, { engine });
    await playing.promise;
    await until(() => server.rollouts.get("r1")!.status.state === "running");
    await caller(opened.service)("DELETE", "/v1/batches");
    await until(hasEnded(server, "r1"));
    expect(server.rollouts.get("r1")!.status.error_message).toBe("it was cancelled");
  });

  test("is notified of a cancellation that preceded the claim's answer, until it confirms", async () => {
    await using server = await startAglServer();
    server.add("r1", { task_index: 4, split: "test" });
    const claiming = withResolvers();
    const cancelled = withResolvers();
    const engine = lampEngine(async (_request, { signal } = {}) => {
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    await using opened = await open(server, {
      engine,
      async claim(ask) {
        claiming.resolve();
        await cancelled.promise;
        return await ask();
      },
    });
    await claiming.promise;
    await until(() => opened.service.health.runningAttempts === 1);
    let failures = 0;
    server.fault = (method) => {
      const { state } = server.rollouts.get("r1")!.status;
      return method === "PATCH" && state === "running" && ++failures <= 2 ? 503 : undefined;
    };
    await caller(opened.service)("DELETE", "/v1/batches");
    cancelled.resolve();
    await until(hasEnded(server, "r1"));
    expect(server.rollouts.get("r1")!.status).toMatchObject({
      state: "failed",
      error_message: "it was cancelled",
    });
    expect(failures).toBe(3);
  });

  test("lets one of two services play a rollout", async () => {
    await using server = await startAglServer();
    const other = await mkdtemp(path.join(tmpdir(), "turnwright-agl-"));
    await using one = await open(server, { attempt: "one" });
    dir = await Promise.resolve(other);
    await using two = await open(server, { attempt: "two" });
    for (let index = 0; index < 40; index++)
      server.add(`r${index}`, { task_index: index, split: "test" });
    for (const id of server.rollouts.keys()) await until(hasEnded(server, id));
    for (const [id, events] of server.events) {
      const { last_attempt_id: attempt } = server.rollouts.get(id)!.status;
      expect(new Set(events.map((event) => event.attempt))).toEqual(new Set([attempt]));
      expect(events.filter(({ event_type: type }) => type === "reward")).toHaveLength(1);
    }
    expect([one.notes, two.notes]).toEqual([[], []]);
  });

  test("is asked again while it does not answer, and when answers are lost: no result is sent twice", async () => {
    await using server = await startAglServer();
    for (let index = 0; index < 10; index++)
      server.add(`r${index}`, { task_index: index, split: "test" });
    let count = 0;
    // Every second call fails: it is refused before it is done, or its answer is lost.
    server.fault = () => (++count % 2 === 0 ? undefined : count % 4 === 1 ? 503 : 0);
    await using opened = await open(server);
    for (const id of server.rollouts.keys()) await until(hasEnded(server, id));
    for (const { status } of server.rollouts.values()) {
      expect(status).toMatchObject({ state: "succeeded", last_attempt_id: "tw" });
    }
    expect(opened.notes[0]).toContain("agent-lightning does not answer and is called again");
  });

  test("receives an earlier start's started rollouts and its undelivered results", async () => {
    await using server = await startAglServer();
    for (let index = 0; index < 6; index++)
      server.add(`r${index}`, { task_index: index, split: "test" });
    let asked = 0;
    const halted = withResolvers();
    const engine = lampEngine(async (_request, { signal } = {}) => {
      asked += 1;
      if (asked <= 3) return;
      halted.resolve();
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    {
      server.fault = (method, at) => (at.endsWith("/events") ? 503 : undefined);
      await using _first = await open(server, { engine, concurrency: 6 });
      await halted.promise;
    }
    expect([...server.rollouts.values()].some(({ status }) => status.state === "succeeded")).toBe(
      false,
    );
    server.fault = () => undefined;
    await using _second = await open(server);
    for (const id of server.rollouts.keys()) await until(hasEnded(server, id));
    for (const [id, events] of server.events) {
      expect(server.rollouts.get(id)!.status.state).toBe("succeeded");
      expect(events.filter(({ event_type: type }) => type === "reward")).toHaveLength(1);
    }
  });

  test("receives a rollout that was played while the claim's answer was lost", async () => {
    await using server = await startAglServer();
    server.add("r1", { task_index: 4, split: "test" });
    let claims = 0;
    await using opened = await open(server, {
      async claim(ask, taking) {
        const isOurs = await ask();
        if (++claims > 1) return isOurs;
        await taking;
        throw new AglError(504, "gateway timeout");
      },
    });
    await until(hasEnded(server, "r1"));
    expect(server.rollouts.get("r1")!.status).toMatchObject({
      state: "succeeded",
      last_attempt_id: "tw",
    });
    expect(server.events.get("r1")!.map(({ event_type: type }) => type)).toEqual([
      "model_request",
      "reward",
    ]);
    expect(opened.notes[0]).toBe(
      "agent-lightning does not answer and is called again: gateway timeout",
    );
  });

  test("receives from the next start a rollout that was played before a stop interrupted the claim", async () => {
    await using server = await startAglServer();
    server.add("r1", { task_index: 4, split: "test" });
    {
      const claimed = withResolvers();
      await using first = await open(server, {
        async claim(ask, taking) {
          await ask();
          await taking;
          claimed.resolve();
          return await new Promise<boolean>((_resolve, reject) => {
            const { stopping } = first.service;
            stopping.addEventListener("abort", () => reject(stopping.reason as Error));
          });
        },
      });
      await claimed.promise;
    }
    expect(server.rollouts.get("r1")!.status.state).toBe("running");
    await using _second = await open(server);
    await until(hasEnded(server, "r1"));
    expect(server.rollouts.get("r1")!.status.state).toBe("succeeded");
    expect(server.events.get("r1")!).toHaveLength(2);
  });

  test("keeps rollouts of other owners, even if they were played before the store said so", async () => {
    await using server = await startAglServer();
    server.add("theirs", { task_index: 4, split: "test" });
    server.add("ours", { task_index: 5, split: "test" });
    let claims = 0;
    await using opened = await open(server, {
      async claim(ask, taking) {
        if (++claims > 1) return await ask();
        await taking;
        const { status } = server.rollouts.get("theirs")!;
        Object.assign(status, { state: "running", last_attempt_id: "other" });
        return await ask();
      },
    });
    await until(hasEnded(server, "ours"));
    expect(server.events.get("theirs")!).toEqual([]);
    expect(server.rollouts.get("theirs")!.status).toMatchObject({
      state: "running",
      last_attempt_id: "other",
    });
    expect(opened.service.batches.map(({ key }) => key)).not.toContain("theirs");
    expect(opened.notes).toEqual([]);
  });

  test("is notified again of an unplayed rollout if it did not answer; other rollouts wait for neither", async () => {
    await using server = await startAglServer();
    server.add("nothing", { prompt: "hello" });
    server.add("ours", { task_index: 5, split: "test" });
    let mayFail = false;
    server.fault = (method, at) =>
      method === "PATCH" && at.endsWith("/nothing") && !mayFail ? 503 : undefined;
    await using _opened = await open(server);
    await until(hasEnded(server, "ours"));
    expect(server.rollouts.get("nothing")!.status.state).toBe("queuing");
    mayFail = true;
    await until(hasEnded(server, "nothing"));
    expect(server.rollouts.get("nothing")!.status).toMatchObject({
      state: "failed",
      error_message: 'The input names no task: expected a "task_index"',
    });
  });

  test.each([
    ["{}", "Invalid input: expected array, received object"],
    ["null", "Invalid input: expected array, received null"],
    ["[null]", "at 0: Invalid input: expected object, received null"],
    [
      '[{"rollout_id": "r9", "input": {"task_index": 1}, "is_train": false}]',
      "at 0.config: Invalid input: expected object, received undefined",
    ],
  ])("is asked again if its list is %s, as another server would answer", async (list, fault) => {
    await using server = await startAglServer();
    server.add("r1", { task_index: 4, split: "test" });
    let lies = 3;
    server.lie = (at) => (at === "/api/rollouts" && lies-- > 0 ? list : undefined);
    await using opened = await open(server);
    await until(hasEnded(server, "r1"));
    expect(server.rollouts.get("r1")!.status.state).toBe("succeeded");
    expect(opened.notes).toEqual([
      expect.stringContaining(
        "agent-lightning does not answer and is called again: GET /api/rollouts?state_in=queuing&limit=256 answered " +
          `something else than agent-lightning's store does`,
      ),
      "agent-lightning answers again",
    ]);
    expect(opened.notes[0]).toContain(fault);
  });

  test("is asked again about a rollout of unknown state, and its result is kept", async () => {
    await using server = await startAglServer();
    server.add("r1", { task_index: 4, split: "test" });
    let lies = 3;
    server.lie = (at) => (at === "/api/rollouts/r1" && lies-- > 0 ? "{}" : undefined);
    await using opened = await open(server);
    await until(hasEnded(server, "r1"));
    expect(server.rollouts.get("r1")!.status.state).toBe("succeeded");
    expect(opened.notes[0]).toContain("at rollout: Invalid input: expected object");
  });
});
