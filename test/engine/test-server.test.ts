import { describe, expect, test } from "vitest";
import type { ServerPolicy, SglangTestServerOptions } from "../../src/testing/index.ts";
import {
  createDeferred,
  createEchoPolicy,
  createScriptedPolicy,
  createSeededPolicy,
  startSglangTestServer,
} from "../../src/testing/index.ts";
import { gatedPolicy } from "./waiting-policies.ts";

interface Reply {
  readonly text: string;
  readonly output_ids: readonly number[];
  readonly prompt_token_ids?: readonly number[];
  readonly index?: number;
  readonly meta_info: Readonly<Record<string, unknown>> & {
    readonly id: string;
    readonly finish_reason: Readonly<Record<string, unknown>> | null;
  };
}

/** A server, and ways to call it as any HTTP client would. */
async function start(options: SglangTestServerOptions = {}) {
  const server = await startSglangTestServer(options);
  const send = (path: string, body?: unknown, init: RequestInit = {}): Promise<Response> =>
    fetch(server.url + path, {
      ...(body !== undefined && {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
      ...init,
    });
  const generate = async (body: unknown): Promise<Reply> =>
    (await (await send("/generate", body)).json()) as Reply;
  return { server, send, generate, [Symbol.asyncDispose]: () => server.close() };
}

const BODY = {
  rid: "x",
  input_ids: [1, 2, 3],
  return_logprob: true,
  sampling_params: { stop_token_ids: [2], max_new_tokens: 8 },
};

const GATED = Array.from({ length: 1_000 }, (_, index) => 10 + index);

describe("/generate", () => {
  test("answers as SGLang 0.5.23 does: the version of each token, and the place of its cache", async () => {
    const turns = [{ outputIds: [10, 2], logprobs: [-0.5, -0.25] }, { outputIds: [11, 2] }];
    await using tested = await start({ policy: createScriptedPolicy(turns) });
    expect((await tested.generate(BODY)).meta_info).toMatchObject({
      weight_version: "default",
      weight_versions: [{ version: "default", start: 0, end: 2 }],
      cached_tokens: 0,
      cached_tokens_details: null,
      dp_rank: null,
    });
    const next = await tested.generate({ ...BODY, input_ids: [1, 2, 3, 10, 2, 7] });
    expect(next.meta_info["cached_tokens_details"]).toEqual({
      device: next.meta_info["cached_tokens"],
      host: 0,
    });
  });

  test.each([
    ["0.5.23", [], { type: "length", length: 0 }],
    ["0.5.15", [0], { type: "length", length: 1 }],
  ] as const)("a budget of 0 samples like %s: %j", async (release, ids, finish) => {
    await using tested = await start({ policy: createSeededPolicy(), release });
    const sampling_params = { max_new_tokens: 0 };
    const reply = await tested.generate({ ...BODY, logprob_start_len: 0, sampling_params });
    expect(reply.output_ids).toEqual(ids);
    expect(reply.meta_info.finish_reason).toEqual(finish);
  });

  test("names the vocabulary's last id 0 among scores", async () => {
    await using tested = await start({ policy: createSeededPolicy(), vocabularySize: 4 });
    const { meta_info: scored } = await tested.generate({ ...BODY, logprob_start_len: 0 });
    const entries = scored["input_token_logprobs"] as [unknown, number, unknown][];
    expect(entries.map(([, id]) => id)).toEqual([1, 2, 0]);
  });

  test("an id outside the vocabulary ends the server", async () => {
    await using tested = await start({ vocabularySize: 4 });
    await expect(tested.send("/generate", { ...BODY, input_ids: [4] })).rejects.toThrow();
    await expect(tested.send("/generate", BODY)).rejects.toThrow();
  });

  test("ends on the model's own end, unless it is to be ignored", async () => {
    const policy = createScriptedPolicy([{ outputIds: [10, 9] }, { outputIds: [10, 9, 11] }]);
    await using tested = await start({ policy, eosTokenId: 9 });
    const first = await tested.generate(BODY);
    expect(first.meta_info.finish_reason).toEqual({ type: "stop", matched: 9 });
    const sampling_params = { max_new_tokens: 3, ignore_eos: true };
    const second = await tested.generate({ ...BODY, input_ids: [5], sampling_params });
    expect(second.output_ids).toEqual([10, 9, 11]);
  });

  test("answers as SGLang 0.5.15 does, the stop id in the ids and not in the text", async () => {
    const policy = createScriptedPolicy([{ outputIds: [10, 2], logprobs: [-0.5, -0.25] }]);
    await using tested = await start({ policy, release: "0.5.15" });
    expect(await tested.generate(BODY)).toEqual({
      text: "<10>",
      output_ids: [10, 2],
      meta_info: {
        id: "x",
        finish_reason: { type: "stop", matched: 2 },
        prompt_tokens: 3,
        cached_tokens: 0,
        num_retractions: 0,
        reasoning_tokens: 0,
        weight_version: "default",
        input_token_logprobs: [],
        output_token_logprobs: [
          [-0.5, 10, null],
          [-0.25, 2, null],
        ],
        output_token_logprobs_length: 2,
        completion_tokens: 2,
        e2e_latency: 0,
      },
    });
  });

  test("keeps the stop in the text on request, and texts in the logprobs", async () => {
    const policy = createScriptedPolicy([
      { outputIds: [10, 2] },
      { outputIds: [10, 11], matched: "<11>" },
    ]);
    await using tested = await start({ policy });
    const sampling = { ...BODY.sampling_params, no_stop_trim: true };
    const body = { ...BODY, sampling_params: sampling, return_text_in_logprobs: true };
    const kept = await tested.generate(body);
    expect(kept.text).toBe("<10><2>");
    expect(kept.meta_info["output_token_logprobs"]).toEqual([
      [-0.0625, 10, "<10>"],
      [-0.125, 2, "<2>"],
    ]);
    const trimmed = await tested.generate({ ...BODY, input_ids: [4] });
    expect([trimmed.text, trimmed.output_ids]).toEqual(["<10>", [10, 11]]);
    expect(trimmed.meta_info.finish_reason).toEqual({ type: "stop", matched: "<11>" });
  });

  test("reports the prompt on request", async () => {
    await using tested = await start({ policy: createEchoPolicy() });
    const body = {
      ...BODY,
      input_ids: [5, 6],
      top_logprobs_num: 1,
      return_prompt_token_ids: true,
    };
    const reply = await tested.generate(body);
    expect(reply.prompt_token_ids).toEqual([5, 6]);
    expect(reply.meta_info["input_token_logprobs"]).toEqual([]);
    expect(reply.meta_info["output_top_logprobs"]).toEqual([
      [[-0.0625, 5, null]],
      [[-0.125, 6, null]],
      [[-0.1875, 2, null]],
    ]);
  });

  test("scores ids as they were sampled, the list's first never", async () => {
    await using tested = await start({ policy: createSeededPolicy() });
    const sampled = await tested.generate({ ...BODY, input_ids: [5, 6] });
    const input_ids = [5, 6, ...sampled.output_ids, 7];
    const sampling_params = { max_new_tokens: 0 };
    const body = { ...BODY, input_ids, logprob_start_len: 1, sampling_params };
    const { meta_info: scored } = await tested.generate(body);
    const reported = sampled.meta_info["output_token_logprobs"] as unknown[];
    expect(scored["input_token_logprobs"]).toEqual([
      [null, 6, null],
      ...reported,
      [expect.any(Number), 7, null],
    ]);
    expect(scored["cached_tokens"]).toBe(1);
    expect(tested.server.problems).toEqual([]);
  });

  test("also scores the prompt of a turn, and refuses if its policy cannot", async () => {
    await using tested = await start({ policy: createScriptedPolicy([{ outputIds: [10, 2] }]) });
    const body = { ...BODY, input_ids: [5, 6], logprob_start_len: 0 };
    const reply = await tested.generate(body);
    expect(reply.output_ids).toEqual([10, 2]);
    expect(reply.meta_info["input_token_logprobs"]).toEqual([
      [null, 5, null],
      [-1, 6, null],
    ]);
    await using echoing = await start({ policy: createEchoPolicy() });
    const refused = await echoing.send("/generate", body);
    expect(refused.status).toBe(400);
    expect(echoing.server.problems).toEqual([
      expect.stringContaining("policy echo cannot score, expected 2 logprobs"),
    ]);
  });

  test("looks at the budget before the stop ids", async () => {
    await using tested = await start({ policy: createScriptedPolicy([{ outputIds: [10, 2] }]) });
    const sampling = { stop_token_ids: [2], max_new_tokens: 2 };
    const reply = await tested.generate({ ...BODY, sampling_params: sampling });
    expect(reply.meta_info.finish_reason).toEqual({ type: "length", length: 2 });
  });

  test("turns a temperature of 0 into greedy sampling, and ignores stop ids with `ignore_eos`", async () => {
    const policy = createScriptedPolicy([{ outputIds: [2, 10, 11] }]);
    await using tested = await start({ policy });
    const sampling = { temperature: 0, ignore_eos: true, stop_token_ids: [2], max_new_tokens: 3 };
    const reply = await tested.generate({ ...BODY, sampling_params: sampling });
    expect(reply.output_ids).toEqual([2, 10, 11]);
    expect(tested.server.requests[0]?.samplingParams).toMatchObject({ temperature: 1, top_k: 1 });
  });

  test("clips the default budget to the context", async () => {
    await using tested = await start({ contextLength: 8 });
    const reply = await tested.generate({ input_ids: [1, 2, 3, 4, 5] });
    expect(reply.output_ids.length).toBeLessThanOrEqual(2);
    expect(tested.server.requests[0]?.maxNewTokens).toBe(2);
  });

  test("writes NaN and infinities as null", async () => {
    const logprobs = [Number.NaN, Number.NEGATIVE_INFINITY];
    await using tested = await start({
      policy: createScriptedPolicy([{ outputIds: [10, 2], logprobs }]),
    });
    const reply = await tested.generate(BODY);
    expect(reply.meta_info["output_token_logprobs"]).toEqual([
      [null, 10, null],
      [null, 2, null],
    ]);
  });

  test("numbers the id of a batch and answers with a list", async () => {
    await using tested = await start({ policy: createEchoPolicy({ tokenCount: 1 }) });
    const body = { ...BODY, input_ids: [[5], [6]] };
    const replies = (await tested.generate(body)) as unknown as Reply[];
    expect(replies.map(({ meta_info: meta, output_ids: ids }) => [meta.id, ids])).toEqual([
      ["x_0", [5, 2]],
      ["x_1", [6, 2]],
    ]);
  });

  test("renames every sample of a prompt, so that no client can abort one by its id", async () => {
    await using tested = await start({ policy: createSeededPolicy() });
    const body = { ...BODY, sampling_params: { n: 3, max_new_tokens: 4 } };
    const replies = (await tested.generate(body)) as unknown as Reply[];
    expect(replies.map(({ meta_info: meta }) => meta.id)).toEqual([
      "server-0",
      "server-1",
      "server-2",
    ]);
  });

  test("reports how much of a session's last prompt it had cached", async () => {
    await using tested = await start({ policy: createEchoPolicy() });
    const headers = { "x-smg-routing-key": "s" };
    const cached: unknown[] = [];
    for (const input of [
      [1, 2, 3],
      [1, 2, 3, 4],
      [1, 9],
    ]) {
      const body = JSON.stringify({ ...BODY, input_ids: input });
      const reply = (await (await tested.send("/generate", body, { headers })).json()) as Reply;
      cached.push(reply.meta_info["cached_tokens"]);
    }
    expect(cached).toEqual([0, 3, 1]);
  });
});

describe("/generate refuses", () => {
  const cases: [string, unknown, number, unknown][] = [
    ["malformed JSON", "{", 400, { object: "error", type: "Bad Request", param: null, code: 400 }],
    ["a wrong type", { input_ids: "1" }, 400, { object: "error", code: 400 }],
    ["ids that are no integers", { input_ids: [1.5] }, 400, { object: "error", code: 400 }],
    [
      "an empty prompt",
      { input_ids: [] },
      400,
      { error: { message: "input_ids cannot be empty." } },
    ],
    [
      "no prompt",
      {},
      400,
      { error: { message: expect.stringContaining("should be provided") as string } },
    ],
    [
      "a prompt as long as the context",
      { input_ids: [1, 2, 3, 4, 5, 6, 7, 8] },
      400,
      {
        error: {
          message: "The input (8 tokens) is longer than the model's context length (8 tokens).",
        },
      },
    ],
    [
      "a budget that exceeds the context",
      { input_ids: [1, 2], sampling_params: { max_new_tokens: 7 } },
      400,
      {
        error: {
          message: expect.stringContaining(
            "Requested token count exceeds the model's maximum context length",
          ) as string,
        },
      },
    ],
    [
      "a value out of range",
      { input_ids: [1], sampling_params: { top_p: 0 } },
      400,
      { error: { message: "top_p must be in (0, 1], got 0." } },
    ],
    [
      "a logprob start beyond the prompt",
      { input_ids: [1], logprob_start_len: 2 },
      400,
      {
        error: { message: "logprob_start_len (2) is higher than the number of input tokens (1)." },
      },
    ],
  ];
  test.each(cases)("%s", async (_name, body, status, reply) => {
    await using tested = await start({ contextLength: 8 });
    const response = await tested.send("/generate", body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject(reply as object);
  });

  test("an unknown sampling parameter, and one of another type, by name", async () => {
    await using tested = await start();
    const unknown = { input_ids: [1], sampling_params: { tempature: 1 } };
    const response = await tested.send("/generate", unknown);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: string };
    expect(error).toMatch(/^unknown field `tempature`, expected one of `max_new_tokens`, `stop`, /);
    const body = { input_ids: [1], sampling_params: { temperature: "hot" } };
    const other = await tested.send("/generate", body);
    expect([other.status, await other.json()]).toEqual([
      400,
      { error: 'invalid type: string "hot", expected f64' },
    ]);
  });

  test("an unknown sampling parameter with a crash, as 0.5.15 does", async () => {
    await using tested = await start({ release: "0.5.15" });
    const body = { input_ids: [1], sampling_params: { tempature: 1 } };
    const response = await tested.send("/generate", body);
    expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
  });

  test("an id that is live already", async () => {
    const { policy, atGate, open } = gatedPolicy(GATED);
    await using tested = await start({ policy });
    const first = tested.generate(BODY);
    await atGate;
    const response = await tested.send("/generate", BODY);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: { message: "Duplicate request ID detected: x" },
    });
    open();
    expect((await first).output_ids).toHaveLength(8);
  });

  test("requests that its policy did not expect, and records them", async () => {
    await using tested = await start({ policy: createScriptedPolicy([{ outputIds: [10, 11] }]) });
    const ended = await tested.send("/generate", BODY);
    expect(ended.status).toBe(400);
    const unexpected = await tested.send("/generate", { ...BODY, input_ids: [7] });
    expect(unexpected.status).toBe(400);
    expect(tested.server.problems).toEqual([
      "Cannot continue request x: the policy ended after 2 tokens, expected a stop id or the budget to end the turn",
      "Cannot play turn 2: the script has 1",
    ]);
  });

  test("calls without the key, but not about its health", async () => {
    await using tested = await start({ apiKey: "k" });
    expect((await tested.send("/generate", BODY)).status).toBe(401);
    expect((await tested.send("/health")).status).toBe(200);
    const headers = { authorization: "Bearer k" };
    expect((await tested.send("/model_info", undefined, { headers })).status).toBe(200);
  });
});

describe("streams", () => {
  async function frames(response: Response): Promise<(Reply & { error?: unknown })[]> {
    const text = await response.text();
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    return text
      .split("\n\n")
      .slice(0, -2)
      .map((frame) => JSON.parse(frame.slice("data: ".length)) as Reply);
  }

  test.each([
    [false, [[10], [10, 11], [10, 11, 2]]],
    [true, [[10], [11], [2]]],
  ])("with increments %s bring these ids", async (incrementalStreaming, ids) => {
    const policy = createScriptedPolicy([{ outputIds: [10, 11, 2] }]);
    await using tested = await start({ policy, incrementalStreaming });
    const response = await tested.send("/generate", { ...BODY, stream: true });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const replies = await frames(response);
    expect(replies.map(({ output_ids: output }) => output)).toEqual(ids);
    const logprobs = replies.map(({ meta_info: meta }) => meta["output_token_logprobs"] as []);
    expect(logprobs.map(({ length }) => length)).toEqual(ids.map(({ length }) => length));
    expect(replies.map(({ meta_info: meta }) => meta["output_token_logprobs_length"])).toEqual([
      1, 2, 3,
    ]);
    expect(replies.map(({ meta_info: meta }) => meta.finish_reason)).toEqual([
      null,
      null,
      { type: "stop", matched: 2 },
    ]);
  });

  test("of a batch say which sequence a frame belongs to", async () => {
    await using tested = await start({ policy: createEchoPolicy({ tokenCount: 1 }) });
    const body = { ...BODY, input_ids: [[5], [6]], stream: true };
    const replies = await frames(await tested.send("/generate", body));
    const last = replies.filter(({ meta_info: meta }) => meta.finish_reason !== null);
    expect(last.map(({ index, output_ids: ids }) => [index, ids])).toEqual([
      [0, [5, 2]],
      [1, [6, 2]],
    ]);
  });

  test("show a new version in the middle", async () => {
    const { policy, atGate, open } = gatedPolicy(GATED);
    await using tested = await start({ policy, weightVersion: "1" });
    const response = await tested.send("/generate", { ...BODY, stream: true });
    await atGate;
    await tested.send("/update_weight_version", { new_version: "2", abort_all_requests: false });
    open();
    const replies = await frames(response);
    expect(replies.map(({ meta_info: meta }) => meta["weight_version"])).toEqual([
      "1",
      "1",
      "2",
      "2",
      "2",
      "2",
      "2",
      "2",
    ]);
    expect(replies.at(-1)?.meta_info["weight_versions"]).toEqual([
      { version: "1", start: 0, end: 2 },
      { version: "2", start: 2, end: 8 },
    ]);
  });

  test("bring refusals as frames", async () => {
    await using tested = await start();
    const response = await tested.send("/generate", { input_ids: [], stream: true });
    expect(response.status).toBe(200);
    expect(await frames(response)).toEqual([
      {
        error: {
          message: "input_ids cannot be empty.",
          type: "invalid_request_error",
          code: 400,
          retryable: false,
        },
      },
    ]);
  });
});

describe("aborting", () => {
  test("a running request returns its sampled tokens, under HTTP 200 and without a status", async () => {
    const { policy, atGate } = gatedPolicy(GATED);
    await using tested = await start({ policy });
    const call = tested.send("/generate", BODY);
    await atGate;
    const aborted = await tested.send("/abort_request", { rid: "x" });
    expect([aborted.status, await aborted.text()]).toEqual([200, ""]);
    const response = await call;
    const reply = (await response.json()) as Reply;
    expect(response.status).toBe(200);
    expect(reply.output_ids).toEqual([10, 11]);
    expect(reply.meta_info.finish_reason).toEqual({
      type: "abort",
      message: "Aborted",
      status_code: null,
      err_type: null,
    });
    expect(reply.meta_info["prompt_tokens"]).toBe(3);
  });

  test("makes one more step if a token is being sampled", async () => {
    let id = 10;
    const policy: ServerPolicy = {
      name: "slow",
      *begin() {
        for (;;) yield { id: id++, logprob: -1 };
      },
    };
    const sleeping = createDeferred();
    const sleep = (_ms: number, { signal }: { signal?: AbortSignal } = {}): Promise<void> =>
      new Promise((_resolve, reject) => {
        sleeping.resolve();
        signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      });
    await using tested = await start({ policy, tokenLatencyMs: 10, sleep });
    const call = tested.generate(BODY);
    await sleeping.promise;
    await tested.send("/abort_request", { rid: "x" });
    expect((await call).output_ids).toEqual([10]);
  });

  test("a waiting request reports nothing of its prompt", async () => {
    const { policy, atGate, open } = gatedPolicy(GATED);
    await using tested = await start({ policy, maxRunning: 1 });
    const first = tested.generate(BODY);
    await atGate;
    const second = tested.generate({ ...BODY, rid: "y" });
    await tested.server.until(({ stats }) => stats.waitingCount === 1);
    expect(await (await tested.send("/v1/loads?include=core")).json()).toMatchObject({
      loads: [{ num_running_reqs: 1, num_waiting_reqs: 1 }],
    });
    await tested.send("/abort_request", { rid: "y" });
    const reply = await second;
    expect(reply.output_ids).toEqual([]);
    expect(reply.meta_info.finish_reason).toEqual({
      type: "abort",
      message: "Abort in waiting queue",
    });
    expect(reply.meta_info).not.toHaveProperty("prompt_tokens");
    expect(reply.meta_info).not.toHaveProperty("cached_tokens");
    open();
    await first;
  });

  test("matches the id's prefix, but only if that exact id is live", async () => {
    const { policy, atGate, open } = gatedPolicy(GATED);
    await using tested = await start({ policy });
    const calls = ["x_1", "x_10", "y"].map((rid) => tested.generate({ ...BODY, rid }));
    await atGate;
    await tested.server.until(({ stats }) => stats.runningCount === 3);
    for (const rid of ["x", "", "unknown"]) {
      expect((await tested.send("/abort_request", { rid })).status).toBe(200);
    }
    expect(tested.server.stats.runningCount).toBe(3);
    await tested.send("/abort_request", { rid: "x_1" });
    const [first, second] = await Promise.all(calls.slice(0, 2));
    expect(first?.meta_info.finish_reason).toMatchObject({ type: "abort" });
    expect(second?.meta_info.finish_reason).toMatchObject({ type: "abort" });
    expect(tested.server.stats.runningCount).toBe(1);
    open();
    expect((await calls[2])?.meta_info.finish_reason).toMatchObject({ type: "length" });
  });

  test("happens by itself when the client disconnects", async () => {
    const { policy, atGate } = gatedPolicy(GATED);
    await using tested = await start({ policy });
    const controller = new AbortController();
    const call = tested.send("/generate", BODY, {
      method: "POST",
      body: JSON.stringify(BODY),
      signal: controller.signal,
    });
    await atGate;
    controller.abort();
    await expect(call).rejects.toThrow("aborted");
    await tested.server.until(({ stats }) => stats.finished.abort === 1);
    expect(tested.server.stats).toMatchObject({ runningCount: 0, sampledTokenCount: 2 });
  });
});

describe("pausing", () => {
  test("with `abort` returns partial results, answers if no request is running, and holds new requests", async () => {
    const { policy, atGate, open } = gatedPolicy(GATED);
    await using tested = await start({ policy });
    const running = tested.generate(BODY);
    await atGate;
    const paused = await tested.send("/pause_generation", {});
    expect(await paused.json()).toEqual({
      message: "Generation paused successfully.",
      status: "ok",
    });
    expect(tested.server.stats.runningCount).toBe(0);
    expect((await running).output_ids).toEqual([10, 11]);
    const held = tested.generate({ ...BODY, rid: "y" });
    await tested.server.until(({ stats }) => stats.heldCount === 1);
    expect((await tested.send("/flush_cache", "")).status).toBe(200);
    open();
    await tested.send("/continue_generation", {});
    expect((await held).output_ids).toHaveLength(8);
  });

  test("with `in_place` freezes what runs, and the cache cannot be flushed", async () => {
    const { policy, atGate, open } = gatedPolicy(GATED);
    await using tested = await start({ policy });
    const running = tested.generate(BODY);
    await atGate;
    await tested.send("/pause_generation", { mode: "in_place" });
    open();
    const flushed = await tested.send("/flush_cache", "");
    expect(flushed.status).toBe(400);
    await flushed.text();
    expect(tested.server.stats.runningCount).toBe(1);
    await tested.send("/continue_generation", {});
    const reply = await running;
    expect(reply.output_ids).toEqual([10, 11, 12, 13, 14, 15, 16, 17]);
    expect(reply.meta_info["num_retractions"]).toBe(0);
  });

  test("with `retract` sends what runs back to the queue, tokens and all", async () => {
    const { policy, atGate, open } = gatedPolicy(GATED);
    await using tested = await start({ policy });
    const running = tested.generate(BODY);
    await atGate;
    await tested.send("/pause_generation", { mode: "retract" });
    open();
    await tested.server.until(({ stats }) => stats.waitingCount === 1);
    await tested.send("/continue_generation", {});
    const reply = await running;
    expect(reply.output_ids).toEqual([10, 11, 12, 13, 14, 15, 16, 17]);
    expect(reply.meta_info["num_retractions"]).toBe(1);
  });

  test("refuses a mode that it does not know", async () => {
    await using tested = await start();
    expect((await tested.send("/pause_generation", { mode: "nap" })).status).toBe(400);
  });

  test("around a weight update shows the new version afterwards", async () => {
    await using tested = await start({ weightVersion: "1" });
    await tested.send("/pause_generation", {});
    const update = { model_path: "m", weight_version: "2" };
    expect(await (await tested.send("/update_weights_from_disk", update)).json()).toMatchObject({
      success: true,
    });
    await tested.send("/continue_generation", {});
    expect(await (await tested.send("/get_model_info")).json()).toMatchObject({
      weight_version: "2",
    });
  });
});

test("paths that it does not have are 404", async () => {
  await using tested = await start();
  expect((await tested.send("/workers")).status).toBe(404);
});
