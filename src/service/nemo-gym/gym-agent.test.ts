import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { withResolvers } from "../../async/with-resolvers.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { inventedRoutes } from "../../testing/column-engine.ts";
import { caller, columnSetup, lampEngine, openLamps } from "../lamp-service.fixture.ts";
import { GymAgent, gymTaker } from "./gym-agent.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-gym-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function open(options: Parameters<typeof openLamps>[1] = {}) {
  const gym = new GymAgent();
  const service = await openLamps(dir, { ...options, takers: { [gymTaker]: gym.taker } });
  return { service, call: caller(service, { gym }) };
}

const routedExperts = { layerCount: 2, perToken: 2, expertCount: 128 };

const row = {
  task_index: 4,
  split: "test",
  agent_ref: { name: "turnwright" },
  _ng_task_index: 0,
  responses_create_params: { input: [], temperature: 0.5, top_p: null },
};

describe("NeMo Gym's POST /run", () => {
  test("answers with the calls of the policy, each with all ids before it, and the reward", async () => {
    const { service, call } = await open();
    await using _service = service;
    await call("POST", "/v1/policy", { version: 7 });
    const { status, body } = await call("POST", "/run", row);
    expect(status).toBe(200);
    const { response, ...rest } = body as {
      readonly response: {
        readonly output: readonly {
          readonly prompt_token_ids: readonly number[];
          readonly generation_token_ids: readonly number[];
          readonly generation_log_probs: readonly number[];
        }[];
      };
    };
    expect(rest).toMatchObject({
      reward: 0,
      responses_create_params: row.responses_create_params,
      outcome: "completed",
      policy_versions: ["7"],
    });
    expect(response).toMatchObject({ object: "response", model: "turnwright", tools: [] });
    let seen: readonly number[] = [];
    for (const call of response.output) {
      expect(call.prompt_token_ids.slice(0, seen.length)).toEqual(seen);
      expect(call.generation_log_probs).toHaveLength(call.generation_token_ids.length);
      seen = [...call.prompt_token_ids, ...call.generation_token_ids];
    }
    expect(response.output.length).toBeGreaterThan(0);
    // The attempt belongs to no other call, and is forgotten once its folder is closed.
    while (service.health.batches > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(service.health).toMatchObject({ batches: 0, unreadGroups: 0 });
    expect(service.batches).toEqual([]);
  });

  test("answers with the routes of each call, a row for each id, -1 for the last one", async () => {
    const { service, call } = await open({ setup: columnSetup({ routedExperts }) });
    await using _service = service;
    const { body } = await call("POST", "/run", row);
    const { response } = body as {
      readonly response: {
        readonly output: readonly {
          readonly prompt_token_ids: readonly number[];
          readonly generation_token_ids: readonly number[];
          readonly routed_experts: string;
        }[];
      };
    };
    const [{ prompt_token_ids, generation_token_ids, routed_experts: text }] = response.output as [
      (typeof response.output)[number],
    ];
    const ids = [...prompt_token_ids, ...generation_token_ids];
    const [, data] = text.split(`nrlre1:int8:${ids.length}x2x2:`);
    const about = { from: 0, rows: ids.length - 1, policyVersion: "1", shape: routedExperts };
    expect([...Buffer.from(data!, "base64")]).toEqual([
      ...inventedRoutes(ids, about),
      255,
      255,
      255,
      255,
    ]);
  });

  test("refuses a run with kept tokens before anything is played", async () => {
    const setup = columnSetup({ keptTokens: { maxCount: 4 } });
    const { service, call } = await open({ setup });
    await using _service = service;
    const { status, body } = await call("POST", "/run", row);
    const { error } = body as {
      readonly error: { readonly code: string; readonly message: string };
    };
    expect([status, error.code]).toEqual([400, "bad-request"]);
    expect(error.message).toContain("Cannot hand this run to NeMo-RL: it has keptTokens");
    expect(service.batches).toEqual([]);
  });

  test("asks for another call if the routes cannot be read", async () => {
    const { service, call } = await open({ setup: columnSetup({ routedExperts }) });
    await using _service = service;
    vi.spyOn(service.columns, "sourceOf").mockReturnValue({
      read: () => Promise.reject(new UsageError("Cannot read the column part: it is gone")),
    });
    const { status, body } = await call("POST", "/run", row);
    expect([status, body]).toEqual([
      502,
      { error: { code: "rollout-failed", message: "Cannot read the column part: it is gone" } },
    ]);
  });

  test("plays as many calls at once as it has places, each separately even if they are equal", async () => {
    let running = 0;
    let most = 0;
    const all = withResolvers();
    const engine = lampEngine(async () => {
      running += 1;
      most = Math.max(most, running);
      if (running === 32) all.resolve();
      await all.promise;
      running -= 1;
    });
    const { service, call } = await open({ engine, concurrency: 32 });
    await using _service = service;
    const answers = await Promise.all(
      Array.from({ length: 40 }, async () => await call("POST", "/run", row)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200));
    expect(most).toBe(32);
  });

  test("asks for another call if only another start could play the rollout", async () => {
    const folder = path.join(dir, "batches/b1");
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, "episodes.jsonl"), "{}\n");
    const { service, call } = await open({ onTrouble: () => {} });
    await using _service = service;
    const { status, body } = await call("POST", "/run", row);
    expect([status, body]).toMatchObject([502, { error: { code: "rollout-failed" } }]);
    expect(service.batches).toEqual([]);
  });

  test("asks for another call if the episode cannot be trained on", async () => {
    const engine = lampEngine(() => {
      throw new RolloutError("engine/timeout", "no answer");
    });
    const { service, call } = await open({ engine });
    await using _service = service;
    const { status, body } = await call("POST", "/run", row);
    expect([status, body]).toMatchObject([502, { error: { code: "rollout-failed" } }]);
    const { message } = (body as { readonly error: { readonly message: string } }).error;
    expect(message).toContain("failed: engine/timeout: no answer");
  });

  test("aborts its attempt when the caller leaves, when it is cancelled, and when the service stops", async () => {
    const playing = [withResolvers(), withResolvers(), withResolvers()];
    let asked = 0;
    const engine = lampEngine(async (_request, { signal } = {}) => {
      playing[asked++]!.resolve();
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    const { service, call } = await open({ engine });
    {
      await using _service = service;
      const leaves = new AbortController();
      const left = call("POST", "/run", undefined, {
        body: JSON.stringify(row),
        headers: { "content-type": "application/json" },
        signal: leaves.signal,
      });
      await playing[0]!.promise;
      leaves.abort();
      expect((await left).status).toBe(502);
      const cancelled = call("POST", "/run", row);
      await playing[1]!.promise;
      await call("DELETE", "/v1/batches");
      expect((await cancelled).status).toBe(502);
      expect(service.health.runningAttempts).toBe(0);
      const stopped = call("POST", "/run", row);
      await playing[2]!.promise;
      service.stop();
      expect((await stopped).status).toBe(503);
    }
    // No caller waits for the attempts of an earlier start.
    const again = await open();
    await using later = again.service;
    expect(later.health).toMatchObject({ batches: 0, queuedAttempts: 0 });
  });

  test("sums up the collected episodes in Gym's form", async () => {
    const { service, call } = await open();
    await using _service = service;
    const responses = [1, 0, 1].map((reward, index) => ({ reward, _ng_task_index: index >> 1 }));
    const { body } = await call("POST", "/aggregate_metrics", { verify_responses: responses });
    expect(body).toEqual({
      group_level_metrics: [
        { _ng_task_index: 0, "mean/reward": 0.5 },
        { _ng_task_index: 1, "mean/reward": 1 },
      ],
      agent_metrics: { "mean/reward": 2 / 3 },
      key_metrics: { "mean/reward": 2 / 3 },
    });
    const empty = await call("POST", "/aggregate_metrics", { verify_responses: [] });
    expect(empty.body).toMatchObject({ group_level_metrics: [], key_metrics: {} });
    const wrong = await call("POST", "/aggregate_metrics", { verify_responses: [{ reward: "1" }] });
    expect(wrong.status).toBe(400);
  });

  test.each([
    [{ ...row, task_index: undefined }, '"task_index" is missing or wrong'],
    [{ ...row, task_index: "4" }, '"task_index" is missing or wrong'],
    [{ ...row, task_index: 500 }, "expected 0 to 49"],
    [{ ...row, split: 3 }, '"split" is missing or wrong'],
    [{ ...row, split: undefined }, '"split" is wrong'],
    [{ ...row, responses_create_params: [] }, '"responses_create_params" is missing or wrong'],
    [
      { ...row, responses_create_params: { temperature: -1 } },
      "responses_create_params.temperature",
    ],
  ])("refuses %j", async (body, message) => {
    const { service, call } = await open();
    await using _service = service;
    const refused = await call("POST", "/run", body);
    expect(refused.status).toBe(400);
    expect((refused.body as { error: { message: string } }).error.message).toContain(message);
    expect(service.health.batches).toBe(0);
  });
});
