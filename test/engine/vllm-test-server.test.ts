import { describe, expect, test } from "vitest";
import type { VllmTestServerOptions } from "../../src/testing/index.ts";
import {
  createEchoPolicy,
  createScriptedPolicy,
  createSeededPolicy,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import { gatedPolicy } from "./waiting-policies.ts";

/** A server, and ways to call it as any HTTP client would. */
async function start(options: VllmTestServerOptions = {}) {
  const server = await startVllmTestServer(options);
  const send = async (
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; body: unknown }> => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(server.url + path, { ...init, headers });
    const text = await response.text();
    return { status: response.status, body: text === "" ? "" : (JSON.parse(text) as unknown) };
  };
  return { server, send, [Symbol.asyncDispose]: () => server.close() };
}

const GENERATE = {
  request_id: "x",
  token_ids: [1, 2, 3],
  sampling_params: { max_tokens: 8, logprobs: 0 },
};
const COMPLETIONS = {
  request_id: "x",
  prompt: [1, 2, 3],
  max_tokens: 8,
  logprobs: 0,
  return_token_ids: true,
};

const GATED = [10, 11, 12, 2];

describe("/inference/v1/generate", () => {
  test("answers as vLLM 0.32 does: ids by number, and the version that sampled each", async () => {
    const policy = createScriptedPolicy([{ outputIds: [10, 2], logprobs: [-0.5, -0.25] }]);
    await using tested = await start({ policy });
    const token = (id: number, logprob: number) => ({
      token_id: id,
      logprob,
      rank: 1,
      top_logprobs: [{ token_id: id, logprob, rank: 1 }],
    });
    const { status, body } = await tested.send("/inference/v1/generate", GENERATE);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      request_id: "generate-tokens-x",
      output_mode: "tokens",
      prompt_token_ids: null,
      choices: [
        {
          logprobs: { content: [token(10, -0.5), token(2, -0.25)] },
          finish_reason: "stop",
          stop_reason: null,
          token_ids: [10, 2],
          weight_versions: [{ version: "default", start: 0, end: 2 }],
        },
      ],
    });
  });

  test("answers as vLLM 0.24 does, the stop id in the ids", async () => {
    const policy = createScriptedPolicy([{ outputIds: [10, 2], logprobs: [-0.5, -0.25] }]);
    await using tested = await start({ release: "0.24", policy });
    const token = (id: number, logprob: number) => ({
      token: `token_id:${id}`,
      logprob,
      bytes: null,
      top_logprobs: [{ token: `token_id:${id}`, logprob, bytes: null }],
    });
    expect(await tested.send("/inference/v1/generate", GENERATE)).toEqual({
      status: 200,
      body: {
        request_id: "generate-tokens-x",
        model: "test-model",
        created: 0,
        choices: [
          {
            index: 0,
            logprobs: { content: [token(10, -0.5), token(2, -0.25)] },
            finish_reason: "stop",
            token_ids: [10, 2],
            routed_experts: null,
            sampling_mask: null,
          },
        ],
        usage: {
          prompt_tokens: 3,
          total_tokens: 5,
          completion_tokens: 2,
          prompt_tokens_details: null,
          completion_tokens_details: null,
        },
        prompt_logprobs: null,
        kv_transfer_params: null,
        ec_transfer_params: null,
      },
    });
  });

  test("fills the context without a budget, and ends there with a larger one", async () => {
    await using tested = await start({
      policy: createSeededPolicy({ stopTokenId: 5_000 }),
      contextLength: 8,
    });
    await tested.send("/inference/v1/generate", { ...GENERATE, sampling_params: {} });
    const large = { ...GENERATE, sampling_params: { max_tokens: 100 } };
    await tested.send("/inference/v1/generate", large);
    expect(tested.server.requests.map(({ outputIds }) => outputIds?.length)).toEqual([5, 5]);
  });

  test("a header names the request instead of the body", async () => {
    await using tested = await start({ policy: createEchoPolicy() });
    const headers = { "x-request-id": "proxy-7" };
    const { body } = await tested.send("/inference/v1/generate", GENERATE, headers);
    expect(body).toMatchObject({ request_id: "generate-tokens-proxy-7" });
  });

  test("several samples are choices", async () => {
    await using tested = await start({ policy: createEchoPolicy({ tokenCount: 1 }) });
    const sampling = { ...GENERATE.sampling_params, n: 2 };
    const { body } = await tested.send("/inference/v1/generate", {
      ...GENERATE,
      sampling_params: sampling,
    });
    const { choices } = body as { choices: { index: number; token_ids: number[] }[] };
    expect(choices.map(({ index, token_ids: ids }) => [index, ids])).toEqual([
      [0, [3, 2]],
      [1, [3, 2]],
    ]);
  });

  test("a stream of an aborted request ends without a reason", async () => {
    const gated = gatedPolicy(GATED);
    await using tested = await start({ policy: gated.policy, isDevelopment: true });
    const response = await fetch(`${tested.server.url}/inference/v1/generate`, {
      method: "POST",
      body: JSON.stringify({ ...GENERATE, stream: true }),
    });
    await gated.atGate;
    await tested.send("/abort_requests", { request_ids: ["generate-tokens-x"] });
    const events = (await response.text()).trim().split("\n\n");
    const reasons = events.map((event) => /"finish_reason":("\w+"|null)/.exec(event)?.[1]);
    expect(reasons).toEqual(["null", "null", undefined]);
    expect(events.at(-1)).toBe("data: [DONE]");
  });
});

describe("/v1/completions", () => {
  test("returns ids on request, and text without its stop", async () => {
    await using tested = await start({ policy: createEchoPolicy({ tokenCount: 1 }) });
    const { body } = await tested.send("/v1/completions", COMPLETIONS);
    expect((body as { choices: unknown[] }).choices).toEqual([
      {
        index: 0,
        text: "<3>",
        logprobs: {
          text_offset: [0, 3],
          token_logprobs: [-0.0625, -0.125],
          tokens: ["<3>", "<2>"],
          top_logprobs: [{ "<3>": -0.0625 }, { "<2>": -0.125 }],
        },
        finish_reason: "stop",
        stop_reason: null,
        token_ids: [3, 2],
        prompt_logprobs: null,
        prompt_token_ids: [1, 2, 3],
        routed_experts: null,
      },
    ]);
  });

  test("samples 16 tokens without a budget, and names a stop id of the request's", async () => {
    await using tested = await start({ policy: createSeededPolicy({ stopTokenId: 5_000 }) });
    await tested.send("/v1/completions", { prompt: [1] });
    expect(tested.server.requests[0]?.outputIds).toHaveLength(16);
    await using other = await start({ policy: createScriptedPolicy([{ outputIds: [10, 9] }]) });
    const { body } = await other.send("/v1/completions", { ...COMPLETIONS, stop_token_ids: [9] });
    expect((body as { choices: { stop_reason: unknown }[] }).choices[0]?.stop_reason).toBe(9);
  });
});

describe("a prompt's logprobs", () => {
  const scored = (id: number, logprob: number) => ({
    [id]: { logprob, rank: 1, decoded_token: `<${id}>` },
  });
  const policy = { ...createSeededPolicy(), score: () => [0, -0.5, Number.NEGATIVE_INFINITY] };
  const list = [null, scored(2, -0.5), scored(3, -9_999)];

  test("are next to the choices, or in each of them, for any cache state", async () => {
    await using tested = await start({ policy, reportsCachedTokens: true });
    const sampling_params = { ...GENERATE.sampling_params, prompt_logprobs: 0 };
    await tested.send("/inference/v1/generate", GENERATE);
    const ids = await tested.send("/inference/v1/generate", { ...GENERATE, sampling_params });
    expect(ids.body).toMatchObject({
      prompt_logprobs: list,
      usage: { prompt_tokens_details: { cached_tokens: 0 } },
    });
    const text = await tested.send("/v1/completions", { ...COMPLETIONS, prompt_logprobs: 0 });
    expect(text.body).toMatchObject({ choices: [{ prompt_logprobs: list }] });
  });

  test("are refused for a wrong count, and if the policy cannot score", async () => {
    await using tested = await start({ policy: createEchoPolicy() });
    const ask = (count: unknown) =>
      tested.send("/inference/v1/generate", {
        ...GENERATE,
        sampling_params: { max_tokens: 1, prompt_logprobs: count },
      });
    expect(await ask(-2)).toMatchObject({
      status: 400,
      body: {
        error: {
          message:
            "prompt_logprobs must be non-negative or -1, got -2. (parameter=prompt_logprobs, value=-2)",
        },
      },
    });
    expect((await ask("all")).status).toBe(400);
    expect((await ask(0)).status).toBe(400);
    expect(tested.server.problems).toEqual([expect.stringContaining("policy echo cannot score")]);
  });
});

describe("refusals", () => {
  const TOO_LONG =
    "This model's maximum context length is 8 tokens. However, you requested 6 output tokens and " +
    "your prompt contains at least 3 input tokens, for a total of at least 9 tokens. Please reduce " +
    "the length of the input prompt or the number of requested output tokens. " +
    "(parameter=input_tokens, value=3)";
  test.each([
    [
      "/inference/v1/generate",
      { ...GENERATE, model: "other" },
      404,
      {
        message: "The model `other` does not exist. Valid aliases: test-model.",
        type: "NotFoundError",
        param: "model",
      },
    ],
    [
      "/inference/v1/generate",
      { ...GENERATE, sampling_params: { temperature: 3 } },
      400,
      {
        message: "temperature must be in [0, 2], got 3.0. (parameter=temperature, value=3.0)",
        type: "BadRequestError",
        param: "temperature",
      },
    ],
    [
      "/inference/v1/generate",
      { ...GENERATE, token_ids: [1, 2, 3, 4, 5, 6, 7, 8, 9] },
      400,
      {
        message:
          "The decoder prompt (length 9) is longer than the maximum model length of 8. Make sure " +
          "that `max_model_len` is no smaller than the number of text tokens.",
        type: "BadRequestError",
        param: null,
      },
    ],
    [
      "/inference/v1/generate",
      { token_ids: [1] },
      400,
      { type: "Bad Request", param: "body.sampling_params" },
    ],
    [
      "/v1/completions",
      { ...COMPLETIONS, max_tokens: 6 },
      400,
      { message: TOO_LONG, type: "BadRequestError", param: "input_tokens" },
    ],
    [
      "/v1/completions",
      { ...COMPLETIONS, prompt: [] },
      500,
      { message: "list index out of range", type: "InternalServerError", param: null },
    ],
  ])("%s %o is HTTP %d", async (path, body, status, error) => {
    await using tested = await start({ contextLength: 8, release: "0.24" });
    expect(await tested.send(path, body)).toEqual({
      status,
      body: { error: { message: expect.any(String) as string, ...error, code: status } },
    });
  });

  test("paths that it does not have, and control paths outside development mode", async () => {
    await using tested = await start({ apis: ["completions"], release: "0.24" });
    const notFound = { status: 404, body: { detail: "Not Found" } };
    expect(await tested.send("/inference/v1/generate", GENERATE)).toEqual(notFound);
    expect(await tested.send("/weight_info")).toEqual(notFound);
    expect(await tested.send("/v1/completions")).toEqual({
      status: 405,
      body: { detail: "Method Not Allowed" },
    });
  });

  test("the key is required on the paths that vLLM guards", async () => {
    await using tested = await start({ apiKey: "k-1" });
    expect(await tested.send("/v1/models")).toEqual({
      status: 401,
      body: { error: "Unauthorized" },
    });
    expect((await tested.send("/version")).status).toBe(200);
    const headers = { authorization: "Bearer k-1" };
    expect((await tested.send("/v1/models", undefined, headers)).status).toBe(200);
  });
});

describe("control paths", () => {
  test("a pause aborts, holds new requests, and ends with `/resume`; the version changes in between", async () => {
    const gated = gatedPolicy(GATED);
    await using tested = await start({ policy: gated.policy, isDevelopment: true });
    const first = tested.send("/inference/v1/generate", GENERATE);
    await gated.atGate;
    expect(await tested.send("/pause?mode=abort", {})).toEqual({
      status: 200,
      body: { status: "paused" },
    });
    expect((await first).body).toMatchObject({ choices: [{ finish_reason: "abort" }] });
    expect((await tested.send("/is_paused")).body).toEqual({ is_paused: true });
    gated.open();
    const second = tested.send("/inference/v1/generate", { ...GENERATE, request_id: "y" });
    await tested.server.until(({ stats }) => stats.heldCount === 1);
    await tested.send("/start_weight_update", {});
    await tested.send("/finish_weight_update", { weight_version: "8" });
    expect((await tested.send("/weight_info")).body).toEqual({ weight_version: "8" });
    await tested.send("/resume", {});
    expect((await second).body).toMatchObject({ choices: [{ token_ids: [10, 11, 12, 2] }] });
  });

  test("a pause that waits lets running requests finish", async () => {
    const gated = gatedPolicy(GATED);
    await using tested = await start({ policy: gated.policy, isDevelopment: true });
    const first = tested.send("/inference/v1/generate", GENERATE);
    await gated.atGate;
    const paused = tested.send("/pause?mode=wait", {});
    await tested.server.until(({ stats }) => stats.runningCount === 1);
    gated.open();
    expect((await first).body).toMatchObject({ choices: [{ finish_reason: "stop" }] });
    expect((await paused).body).toEqual({ status: "paused" });
  });

  test("an abort without a request id aborts all requests, including held ones", async () => {
    await using tested = await start({ isDevelopment: true });
    await tested.server.pause("keep");
    const held = tested.send("/inference/v1/generate", GENERATE);
    await tested.server.until(({ stats }) => stats.heldCount === 1);
    expect((await tested.send("/abort_requests", {})).body).toEqual({
      status: "aborted",
      aborted: 1,
    });
    expect((await held).body).toMatchObject({
      choices: [{ token_ids: [], finish_reason: "abort" }],
    });
  });
});
