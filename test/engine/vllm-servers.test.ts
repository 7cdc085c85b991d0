import { describe, expect, test } from "vitest";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import type { VllmEngineOptions } from "../../src/engine/vllm/vllm-options.ts";
import type { ServerPolicy, VllmRelease } from "../../src/testing/index.ts";
import {
  createEchoPolicy,
  createManualClock,
  createScriptedPolicy,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import { listen } from "../../src/testing/protocol-servers/shared/listen.ts";
import { failureOf, toRequest } from "./request.ts";
import type { Connection } from "./under-test.ts";
import { underTest } from "./under-test.ts";
import { gatedPolicy, stuckPolicy } from "./waiting-policies.ts";

/** A server that answers each request with the result of `answer`, and the requested paths. */
async function startOther(answer: (path: string) => { status?: number; body: string }) {
  const paths: string[] = [];
  const http = await listen(0, (request, response) => {
    const path = `${request.method} ${request.url}`;
    paths.push(path);
    request.resume();
    request.once("end", () => {
      const { status = 200, body } = answer(path);
      response.writeHead(status, { "content-type": "application/json" });
      response.end(body);
    });
  });
  return { url: http.url, paths, [Symbol.asyncDispose]: () => http.close() };
}

describe("the request", () => {
  test.each(["generate", "completions"] as const)(
    "%s: every sampling parameter is written out, and the turn's own values override `extra`",
    async (api) => {
      await using server = await startVllmTestServer({ policy: createEchoPolicy(), apis: [api] });
      const engine = createVllmEngine({
        url: `${server.url}/`,
        model: "test-model",
        random: () => 0.5,
      });
      await engine.generate(
        toRequest({
          sampling: {
            temperature: 0.7,
            topP: 0.9,
            seed: 11,
            extra: { min_tokens: 1, max_tokens: 99, logprobs: 5 },
          },
          stopTokenIds: [2, 9],
        }),
      );
      await engine.close();
      const [request] = server.requests;
      expect(request).toMatchObject({
        rid: "0.5-0~a",
        routingKey: "s",
        inputIds: [1, 2, 3],
        maxNewTokens: 16,
      });
      expect(request?.samplingParams).toEqual({
        n: 1,
        temperature: 0.7,
        top_p: 0.9,
        top_k: 0,
        min_p: 0,
        frequency_penalty: 0,
        presence_penalty: 0,
        repetition_penalty: 1,
        seed: 11,
        min_tokens: 1,
        max_tokens: 16,
        stop: null,
        stop_token_ids: [2, 9],
        ignore_eos: false,
        logprobs: 0,
        prompt_logprobs: null,
        logit_bias: null,
        skip_special_tokens: false,
        spaces_between_special_tokens: false,
        include_stop_str_in_output: true,
      });
    },
  );

  test("the key is sent, and a session id that no header can contain is encoded", async () => {
    await using server = await startVllmTestServer({ policy: createEchoPolicy(), apiKey: "k-1" });
    const engine = createVllmEngine({ url: server.url, apiKey: "k-1" });
    await engine.generate(toRequest({ sessionId: "tâche 7" }));
    expect(server.requests.map(({ routingKey }) => routingKey)).toEqual(["t%C3%A2che%207"]);
    await engine.close();
    const other = createVllmEngine({ url: server.url });
    expect(await failureOf(other.describe())).toEqual({
      code: "engine/unauthorized",
      retryable: false,
      message:
        `Cannot describe the engine at ${server.url}: HTTP 401 (Unauthorized), ` +
        "expected a vLLM server (a valid apiKey)",
    });
    await other.close();
  });

  test("the number of cached prompt tokens is read if the server reports it", async () => {
    await using server = await startVllmTestServer({
      policy: createEchoPolicy(),
      reportsCachedTokens: true,
    });
    const engine = createVllmEngine({ url: server.url });
    const first = await engine.generate(toRequest());
    const next = await engine.generate(toRequest({ promptIds: [1, 2, 3, 4], requestId: "b" }));
    expect([first.cachedTokenCount, next.cachedTokenCount]).toEqual([0, 3]);
    await engine.close();
  });
});

describe("which API is used", () => {
  test("the ids-only API if the server has it, detected by the first request itself", async () => {
    await using server = await startVllmTestServer({ policy: createEchoPolicy({ tokenCount: 1 }) });
    const engine = createVllmEngine({ url: server.url });
    expect((await engine.generate(toRequest())).outputIds).toEqual([3, 2]);
    expect(server.stats.generateCount).toBe(1);
    await engine.close();
  });

  test("completions if the server lacks the other API, after one request that does not count as failed", async () => {
    await using server = await startOther((path) =>
      path.includes("/v1/completions")
        ? {
            body: JSON.stringify({
              choices: [
                {
                  token_ids: [10, 2],
                  logprobs: { tokens: ["token_id:10", "token_id:2"], token_logprobs: [-1, -2] },
                  finish_reason: "stop",
                  stop_reason: null,
                },
              ],
            }),
          }
        : { status: 404, body: '{"detail":"Not Found"}' },
    );
    const clock = createManualClock();
    const { now, sleep } = clock;
    const engine = createVllmEngine({ url: server.url, now, sleep });
    for (const requestId of ["a", "b"]) {
      expect(await engine.generate(toRequest({ requestId }))).toEqual({
        outputIds: [10, 2],
        logprobs: [-1, -2],
        finish: { type: "stop", matched: 2 },
        pieces: [{ requestId, tokenCount: 2, policyVersion: "", finish: "stop" }],
        discarded: [],
      });
    }
    expect(server.paths).toEqual([
      "GET /weight_info",
      "POST /inference/v1/generate",
      "POST /v1/completions",
      "POST /v1/completions",
    ]);
    expect(clock.pendingCount).toBe(0);
    await engine.close();
  });

  test.each([
    [405, '{"error":{"message":"Method Not Allowed"}}'],
    [501, '{"error":{"message":"The model does not support generate tokens API"}}'],
  ])("HTTP %d for the first means that it is lacking", async (status, body) => {
    await using server = await startVllmTestServer({
      policy: createEchoPolicy({ tokenCount: 1 }),
      faults: [{ kind: "status", status, body }],
    });
    const engine = createVllmEngine({ url: server.url });
    expect((await engine.generate(toRequest())).outputIds).toEqual([3, 2]);
    expect(server.stats.generateCount).toBe(2);
    await engine.close();
  });

  test("an unserved model is distinguished from a missing path", async () => {
    await using server = await startVllmTestServer({ policy: createEchoPolicy() });
    const engine = createVllmEngine({ url: server.url, model: "nope" });
    expect((await failureOf(engine.generate(toRequest()))).message).toContain('"test-model"');
    expect(server.stats.generateCount).toBe(1);
    await engine.close();
  });

  test("one that is asked for by name is not replaced", async () => {
    await using server = await startVllmTestServer({ apis: ["completions"] });
    const engine = createVllmEngine({ url: server.url, api: "generate" });
    expect(await failureOf(engine.generate(toRequest()))).toMatchObject({
      code: "engine/bad-request",
      message:
        `Cannot sample request a at ${server.url}: HTTP 403 (the server was started without ` +
        "/inference/v1/generate), expected `vllm serve` with --enable-scale-out, or --engine-api " +
        "completions",
    });
    await engine.close();
  });
});

describe("a server that was started without the ids-only API", () => {
  test("is asked by completions, and what to start it with is a warning", async () => {
    await using server = await startVllmTestServer({
      policy: createEchoPolicy(),
      apis: ["completions"],
    });
    const engine = createVllmEngine({ url: server.url });
    expect((await engine.describe()).warnings).toEqual([
      "the server was started without /inference/v1/generate, so turns go to /v1/completions, whose " +
        "replies name no version of the policy; start `vllm serve` with --enable-scale-out",
    ]);
    expect((await engine.generate(toRequest())).finish).toEqual({ type: "stop", matched: 2 });
    await engine.close();
  });

  test("of a release that has the path at all is still asked with its key", async () => {
    await using server = await startVllmTestServer({
      policy: createEchoPolicy(),
      faults: [{ kind: "status", status: 403, body: { error: "Forbidden" } }],
    });
    const engine = createVllmEngine({ url: server.url });
    expect(await failureOf(engine.generate(toRequest()))).toMatchObject({
      code: "engine/unauthorized",
      message: expect.stringContaining("HTTP 403 (Forbidden), expected a valid apiKey") as string,
    });
    await engine.close();
  });
});

describe("describe()", () => {
  test("reports model, release, version, context length and convention", async () => {
    await using server = await startVllmTestServer({
      policy: createEchoPolicy(),
      servedModels: ["org/model", "adapter"],
      contextLength: 4_096,
      isDevelopment: true,
      weightVersion: "12",
    });
    const engine = createVllmEngine({ url: server.url });
    expect(await engine.describe()).toEqual({
      kind: "vllm",
      url: server.url,
      model: "org/model",
      engineVersion: "0.0.0+test",
      policyVersion: "12",
      logprobConvention: "raw",
      contextLength: 4_096,
    });
    expect(server.problems).toEqual([]);
    await engine.close();
  });

  test("reports the requested model, and prefers configured values to found ones", async () => {
    await using server = await startVllmTestServer({ servedModels: ["base", "adapter"] });
    const engine = createVllmEngine({
      url: server.url,
      model: "adapter",
      logprobConvention: "processed",
      policyVersion: "step-7",
    });
    expect(await engine.describe()).toEqual({
      kind: "vllm",
      url: server.url,
      model: "adapter",
      engineVersion: "0.0.0+test",
      policyVersion: "step-7",
      logprobConvention: "processed",
    });
    expect(server.stats.generateCount).toBe(0);
    await engine.close();
  });

  test("names the served models if the requested one is not among them", async () => {
    await using server = await startVllmTestServer({ servedModels: ["base", "adapter"] });
    const engine = createVllmEngine({ url: server.url, model: "other" });
    expect(await failureOf(engine.describe())).toEqual({
      code: "engine/bad-request",
      retryable: false,
      message:
        `Cannot use model "other" of the engine at ${server.url}: it is not served, ` +
        'expected one of "base", "adapter"',
    });
    await engine.close();
  });

  test("names the problem of a server that is not vLLM", async () => {
    await using server = await startOther(() => ({ body: "<html></html>" }));
    const engine = createVllmEngine({ url: server.url });
    expect(await failureOf(engine.describe())).toEqual({
      code: "engine/bad-reply",
      retryable: false,
      message:
        `Cannot describe the engine at ${server.url}: /v1/models lists no model, ` +
        "expected a vLLM server",
    });
    await engine.close();
  });
});

describe("the logprob convention", () => {
  test("is `raw` if one candidate's logprob equals its logprob among all", async () => {
    await using server = await startVllmTestServer({ policy: createEchoPolicy() });
    const engine = createVllmEngine({ url: server.url, random: () => 0.5 });
    expect((await engine.describe()).logprobConvention).toBe("raw");
    const seen = server.requests.map(({ rid, inputIds, maxNewTokens, samplingParams }) => [
      rid,
      inputIds,
      maxNewTokens,
      samplingParams["temperature"],
      samplingParams["top_k"],
    ]);
    expect(seen).toEqual([
      ["0.5-0~turnwright-probe-0-greedy", [0], 1, 0, 0],
      ["0.5-1~turnwright-probe-0-only", [0], 1, 2, 1],
    ]);
    await engine.close();
  });

  test("is `processed` if one candidate's logprob is 0", async () => {
    await using server = await startVllmTestServer({
      policy: createEchoPolicy(),
      logprobsMode: "processed_logprobs",
    });
    const engine = createVllmEngine({ url: server.url });
    expect((await engine.describe()).logprobConvention).toBe("processed");
    await engine.close();
  });

  /**
   * Certain of the token after [0]; at temperature 2 uncertain of the tokens after other prompts.
   */
  const tempered: ServerPolicy = {
    name: "tempered",
    begin: ({ inputIds, samplingParams }) => {
      const logprob = samplingParams["temperature"] === 2 ? -2.5 : -1;
      return [{ id: 7, logprob: inputIds[0] === 0 ? 0 : logprob }];
    },
  };

  test("is `tempered` if it is neither; a prompt with a certain next token proves nothing", async () => {
    await using server = await startVllmTestServer({ policy: tempered });
    const engine = createVllmEngine({ url: server.url });
    expect((await engine.describe()).logprobConvention).toBe("tempered");
    expect(server.requests.map(({ inputIds }) => inputIds)).toEqual([
      [0],
      [0],
      [1, 2, 3],
      [1, 2, 3],
    ]);
    await engine.close();
  });

  test("comes from a server in development mode if no probe decides", async () => {
    await using server = await startVllmTestServer({
      policy: createScriptedPolicy([]),
      isDevelopment: true,
      logprobsMode: "processed_logprobs",
    });
    const engine = createVllmEngine({ url: server.url });
    const description = await engine.describe();
    expect(description.logprobConvention).toBe("processed");
    expect(description).not.toHaveProperty("warnings");
    await engine.close();
  });

  test.each([
    ["a server that is not in development mode", {}],
    ["one that cannot tell what it runs on", { isDevelopment: true, answersServerInfo: false }],
  ])("is assumed otherwise, with a warning that says why: %s", async (_, options) => {
    const certain: ServerPolicy = { name: "certain", begin: () => [{ id: 7, logprob: 0 }] };
    await using server = await startVllmTestServer({ policy: certain, ...options });
    const engine = createVllmEngine({ url: server.url, probePrompts: [[5]] });
    const description = await engine.describe();
    expect(description).toMatchObject({ logprobConvention: "raw", isConventionAssumed: true });
    expect(description.warnings).toEqual([
      "logprobConvention is assumed to be raw, vLLM's default: the server's --logprobs-mode could " +
        "not be determined (every probe was certain of its token)",
    ]);
    await engine.close();
  });

  test("a server that writes logits is found out by the warning", async () => {
    const logits: ServerPolicy = { name: "logits", begin: () => [{ id: 7, logprob: 12.5 }] };
    await using server = await startVllmTestServer({ policy: logits });
    const engine = createVllmEngine({ url: server.url, retry: { maxAttempts: 1 } });
    const { warnings = [] } = await engine.describe();
    expect(warnings[0]).toContain(
      "of sampled id 7, is 12.5, expected a finite logarithm, at most 0",
    );
    expect(server.stats.generateCount).toBe(1);
    await engine.close();
  });
});

describe("the policy's version", () => {
  async function start(options: Partial<VllmEngineOptions> = {}, release: VllmRelease = "0.24") {
    const gated = gatedPolicy([10, 11, 12, 2], { resumes: true });
    const server = await startVllmTestServer({
      release,
      policy: gated.policy,
      isDevelopment: true,
      weightVersion: "7",
    });
    const connect = (connection: Connection) => createVllmEngine({ ...connection, ...options });
    const tested = underTest(server, connect, createManualClock({ skipUpToMs: 1 }));
    return { ...gated, ...tested };
  }

  test("is the old one for tokens sampled before a pause, the new one for the rest", async () => {
    await using tested = await start();
    const { server, engine, clock } = tested;
    const call = engine.generate(toRequest());
    await tested.atGate;
    await server.pause("abort");
    // The rest is asked for while the server is paused still, and held until the update is over.
    await clock.untilSleeping(250);
    await clock.advance(250);
    await server.until(({ stats }) => stats.heldCount === 1);
    server.setWeightVersion("8");
    tested.open();
    server.resume();
    expect((await call).pieces).toEqual([
      { requestId: "a", tokenCount: 2, policyVersion: "7", finish: "abort" },
      { requestId: "r1~a", tokenCount: 2, policyVersion: "8", finish: "stop" },
    ]);
  });

  test.each([
    ["0.24", [{ requestId: "a", tokenCount: 4, policyVersion: "8", finish: "stop" }]],
    [
      "0.32",
      [
        { requestId: "a", tokenCount: 2, policyVersion: "7", finish: "abort" },
        { requestId: "a", tokenCount: 2, policyVersion: "8", finish: "stop" },
      ],
    ],
  ] as const)(
    "is the final one if an update replaced the weights of a frozen request, but is per token if the server reports it (%s)",
    async (release, pieces) => {
      await using tested = await start({}, release);
      const { server, engine } = tested;
      const call = engine.generate(toRequest());
      await tested.atGate;
      await server.pause("keep");
      server.setWeightVersion("8");
      tested.open();
      server.resume();
      expect((await call).pieces).toEqual(pieces);
    },
  );

  test("is the configured one, read again for each request; the server is not asked", async () => {
    let version = "step-1";
    await using tested = await start({ policyVersion: () => version });
    tested.open();
    const first = await tested.engine.generate(toRequest());
    version = "step-2";
    const second = await tested.engine.generate(toRequest({ requestId: "b" }));
    expect([first, second].map(({ pieces }) => pieces[0]?.policyVersion)).toEqual([
      "step-1",
      "step-2",
    ]);
  });

  test("readings are shared by requests that run at the same time", async () => {
    const answers = new Map([
      ["GET /weight_info", '{"weight_version":"3"}'],
      [
        "POST /inference/v1/generate",
        JSON.stringify({
          choices: [
            {
              token_ids: [2],
              logprobs: { content: [{ token: "token_id:2", logprob: -1 }] },
              finish_reason: "stop",
            },
          ],
        }),
      ],
    ]);
    await using server = await startOther((path) => ({ body: answers.get(path) ?? "{}" }));
    const clock = createManualClock();
    const engine = createVllmEngine({ url: server.url, now: clock.now, sleep: clock.sleep });
    const calls = Array.from({ length: 50 }, (_, index) =>
      engine.generate(toRequest({ requestId: `${index}-` })),
    );
    for (const { pieces } of await Promise.all(calls)) expect(pieces[0]?.policyVersion).toBe("3");
    // One before all of them, and at most one after each.
    const firstRequest = server.paths.findIndex((path) => path.startsWith("POST"));
    expect(server.paths.slice(0, firstRequest)).toEqual(["GET /weight_info"]);
    const readings = server.paths.filter((path) => path === "GET /weight_info");
    expect(readings.length).toBeLessThanOrEqual(51);
    await engine.close();
  });

  test("is empty if the server does not report it, and the server is asked once", async () => {
    await using server = await startVllmTestServer({ release: "0.24", policy: createEchoPolicy() });
    const engine = createVllmEngine({ url: server.url });
    const { pieces } = await engine.generate(toRequest());
    expect(pieces[0]?.policyVersion).toBe("");
    expect((await engine.describe()).policyVersion).toBeUndefined();
    await engine.close();
  });
});

describe("cancelling", () => {
  test.each(["generate", "completions"] as const)(
    "%s: a running request is aborted by the server's own name for it",
    async (api) => {
      await using server = await startVllmTestServer({
        policy: stuckPolicy(10),
        apis: [api],
        isDevelopment: true,
        // The dropped connection would abort it too, but is not noticed here.
        disconnectPollMs: 60_000,
      });
      const engine = createVllmEngine({ url: server.url, random: () => 0.5 });
      const controller = new AbortController();
      const call = engine.generate(toRequest(), { signal: controller.signal });
      await server.until(({ stats }) => stats.runningCount === 1);
      const reason = new Error("enough");
      controller.abort(reason);
      await expect(call).rejects.toBe(reason);
      await server.until(({ stats }) => stats.finished.abort === 1);
      expect(server.stats.abortCount).toBe(api === "generate" ? 1 : 2);
      expect(server.requests[0]).toMatchObject({ rid: "0.5-0~a", outputIds: [10] });
      await engine.close();
    },
  );

  test("without an abort path, the dropped connection aborts the request", async () => {
    await using server = await startVllmTestServer({ release: "0.24", policy: stuckPolicy(10) });
    const engine = createVllmEngine({ url: server.url });
    for (const requestCount of [1, 2]) {
      const controller = new AbortController();
      const call = engine.generate(toRequest(), { signal: controller.signal });
      await server.until(({ requests }) => requests.length === requestCount);
      controller.abort(new Error("enough"));
      await expect(call).rejects.toThrow("enough");
    }
    await server.until(({ stats }) => stats.finished.abort === 2);
    expect(server.stats.abortCount).toBe(2);
    await engine.close();
  });

  test("does not wait for a version reading that never arrives", async () => {
    await using server = await startOther(() => ({ body: "{}" }));
    const silent = await listen(0, () => undefined);
    const clock = createManualClock();
    const { now, sleep } = clock;
    const engine = createVllmEngine({ url: silent.url, now, sleep });
    const controller = new AbortController();
    const call = engine.generate(toRequest(), { signal: controller.signal });
    await clock.untilSleeping(5_000);
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    await engine.close();
    expect(clock.pendingCount).toBe(0);
    expect(server.paths).toEqual([]);
    await silent.close();
  });
});

test("options that cannot be used are named", () => {
  expect(() => createVllmEngine({ url: "http://a", probePrompts: [[]] })).toThrow(
    "Cannot use an empty prompt in probePrompts: expected at least one id",
  );
});
