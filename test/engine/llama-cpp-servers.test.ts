import { describe, expect, test } from "vitest";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { createEchoPolicy, startLlamaCppTestServer } from "../../src/testing/index.ts";
import { listen } from "../../src/testing/protocol-servers/shared/listen.ts";
import { failureOf, toRequest } from "./request.ts";
import { stuckPolicy } from "./waiting-policies.ts";

describe("the request", () => {
  test("every parameter that shapes sampling is spelled out, in the other engines' order", async () => {
    await using server = await startLlamaCppTestServer({ policy: createEchoPolicy() });
    const engine = createLlamaCppEngine({ url: `${server.url}/` });
    await engine.generate(
      toRequest({
        sampling: {
          temperature: 0.7,
          topP: 0.9,
          seed: 11,
          extra: { n_predict: 99, n_probs: 5, min_keep: 2 },
        },
      }),
    );
    await engine.close();
    const [request] = server.requests;
    expect(request).toMatchObject({ routingKey: "s", inputIds: [1, 2, 3], maxNewTokens: 16 });
    expect(request?.samplingParams).toEqual({
      n_predict: 16,
      samplers: ["penalties", "temperature", "top_k", "top_p", "min_p"],
      mirostat: 0,
      temperature: 0.7,
      dynatemp_range: 0,
      top_k: 0,
      top_p: 0.9,
      min_p: 0,
      min_keep: 2,
      typical_p: 1,
      repeat_penalty: 1,
      frequency_penalty: 0,
      presence_penalty: 0,
      repeat_last_n: 0,
      seed: 11,
      n_probs: 1,
      ignore_eos: false,
      cache_prompt: true,
      post_sampling_probs: false,
      return_tokens: true,
      stream: false,
    });
  });

  test("without a seed it is random, not the server's; penalties look at everything", async () => {
    await using server = await startLlamaCppTestServer({ policy: createEchoPolicy() });
    const engine = createLlamaCppEngine({ url: server.url });
    await engine.generate(toRequest({ sampling: { repetitionPenalty: 1.1, topK: 40 } }));
    await engine.close();
    expect(server.requests[0]?.samplingParams).toMatchObject({
      seed: -1,
      repeat_penalty: 1.1,
      repeat_last_n: 19,
      top_k: 40,
    });
  });

  test("a request names a slot only if sessions keep one, and then by the session", async () => {
    const slots: unknown[] = [];
    const http = await listen(0, (request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      request.once("end", () => {
        slots.push((JSON.parse(text) as Record<string, unknown>)["id_slot"]);
        const entry = { id: 2, logprob: -1, top_logprobs: [{ id: 2, logprob: -1 }] };
        const reply = { tokens: [2], completion_probabilities: [entry], stop_type: "eos" };
        response.end(JSON.stringify(reply));
      });
    });
    const free = createLlamaCppEngine({ url: http.url });
    await free.generate(toRequest());
    await free.close();
    expect(slots).toEqual([undefined]);

    const pinned = createLlamaCppEngine({ url: http.url, slotAffinity: "session" });
    for (const sessionId of ["s-1", "s-2", "s-3", "s-1"]) {
      await pinned.generate(toRequest({ sessionId }));
    }
    await pinned.close();
    const [, first, second, third, again] = slots as number[];
    expect(again).toBe(first);
    expect(new Set([first, second, third]).size).toBe(3);
    // The server reads it as a 32-bit integer.
    for (const slot of [first, second, third]) {
      expect(slot).toBeGreaterThanOrEqual(0);
      expect(slot).toBeLessThan(2 ** 31);
    }
    await http.close();
  });
});

describe("describe()", () => {
  test("reports model, release and the length of a slot's context", async () => {
    await using server = await startLlamaCppTestServer({
      modelPath: "tiny.gguf",
      contextLength: 1_024,
      apiKey: "k-1",
    });
    const engine = createLlamaCppEngine({
      url: server.url,
      apiKey: "k-1",
      policyVersion: "step-3",
    });
    expect(await engine.describe()).toEqual({
      kind: "llama-cpp",
      url: server.url,
      model: "tiny.gguf",
      engineVersion: "b0-test",
      policyVersion: "step-3",
      logprobConvention: "raw",
      contextLength: 1_024,
    });
    await engine.close();
  });

  test("a router is asked for the configured model, or for its model's name if none is configured", async () => {
    await using server = await startLlamaCppTestServer({ modelPath: "a b", contextLength: 1_024 });
    // Source: ggml-org/llama.cpp tools/server/server-models.cpp (get_router_props).
    const own = {
      role: "router",
      model_alias: "llama-server",
      model_path: "none",
      default_generation_settings: { params: {}, n_ctx: 0 },
      build_info: "b0-test",
    };
    const asked: (string | undefined)[] = [];
    const router = await listen(0, (request, response) => {
      asked.push(request.url);
      if (request.url === "/props") response.end(JSON.stringify(own));
      else {
        void fetch(`${server.url}${request.url}`).then(async (reply) => {
          response.end(await reply.text());
        });
      }
    });
    const unnamed = createLlamaCppEngine({ url: router.url });
    expect(await failureOf(unnamed.describe())).toEqual({
      code: "engine/bad-request",
      retryable: false,
      message:
        `Cannot use the engine at ${router.url}: it is llama.cpp's router, which samples nothing by itself, ` +
        "expected the name of one of its models as the option model (--served-model); /v1/models lists them",
    });
    await unnamed.close();
    const named = createLlamaCppEngine({ url: router.url, model: "a b" });
    expect(await named.describe()).toMatchObject({ model: "a b", contextLength: 1_024 });
    await named.close();
    expect(asked).toEqual(["/props", "/props?model=a%20b"]);
    await router.close();
  });

  test("reports the problem: another key, a loading model, another server", async () => {
    await using server = await startLlamaCppTestServer({ apiKey: "k-1" });
    const stranger = createLlamaCppEngine({ url: server.url });
    expect(await failureOf(stranger.describe())).toEqual({
      code: "engine/unauthorized",
      retryable: false,
      message:
        `Cannot describe the engine at ${server.url}: HTTP 401 (Invalid API Key), ` +
        "expected a llama.cpp server (a valid apiKey)",
    });
    await stranger.close();
    server.setLoading(true);
    const engine = createLlamaCppEngine({ url: server.url, apiKey: "k-1" });
    expect(await failureOf(engine.describe())).toMatchObject({
      code: "engine/overloaded",
      retryable: true,
      message: expect.stringContaining("HTTP 503 (Loading model)") as string,
    });
    await engine.close();
  });
});

test("the policy's version is the configured one, read again for each request", async () => {
  await using server = await startLlamaCppTestServer({ policy: createEchoPolicy() });
  let version = "step-1";
  const engine = createLlamaCppEngine({ url: server.url, policyVersion: () => version });
  const first = await engine.generate(toRequest());
  version = "step-2";
  const second = await engine.generate(toRequest({ requestId: "b" }));
  expect([first, second].map(({ pieces }) => pieces[0]?.policyVersion)).toEqual([
    "step-1",
    "step-2",
  ]);
  await engine.close();
});

test("cancelling drops the connection, and the server stops", async () => {
  await using server = await startLlamaCppTestServer({ policy: stuckPolicy(10) });
  const engine = createLlamaCppEngine({ url: server.url });
  const controller = new AbortController();
  const call = engine.generate(toRequest(), { signal: controller.signal });
  await server.until(({ stats }) => stats.runningCount === 1);
  const reason = new Error("enough");
  controller.abort(reason);
  await expect(call).rejects.toBe(reason);
  await server.until(({ stats }) => stats.finished.abort === 1);
  await engine.close();
});
