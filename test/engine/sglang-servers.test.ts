import { describe, expect, test } from "vitest";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import type { SglangEngineOptions } from "../../src/engine/sglang/sglang-options.ts";
import {
  createEchoPolicy,
  createManualClock,
  startSglangTestRouter,
  startSglangTestServer,
} from "../../src/testing/index.ts";
import { listen } from "../../src/testing/protocol-servers/shared/listen.ts";
import { failureOf, toRequest } from "./request.ts";

/** An address without a server. */
async function freeAddress(): Promise<{ url: string; port: number }> {
  const server = await listen(0, () => undefined);
  await server.close();
  return server;
}

describe("the request", () => {
  test("every sampling parameter is written out, and the turn's own values override `extra`", async () => {
    await using server = await startSglangTestServer({ policy: createEchoPolicy() });
    const engine = createSglangEngine({ url: `${server.url}/`, random: () => 0.5 });
    await engine.generate(
      toRequest({
        sampling: {
          temperature: 0.7,
          topP: 0.9,
          seed: 11,
          extra: { min_new_tokens: 1, max_new_tokens: 99 },
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
      // The model's own end besides.
      stopTokenIds: [2, 9, 2],
    });
    expect(request?.samplingParams).toMatchObject({
      temperature: 0.7,
      top_p: 0.9,
      top_k: -1,
      min_p: 0,
      frequency_penalty: 0,
      presence_penalty: 0,
      repetition_penalty: 1,
      sampling_seed: 11,
      min_new_tokens: 1,
      max_new_tokens: 16,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
      no_stop_trim: true,
    });
  });

  test("the key is sent with every call, and a session id that no header can contain is encoded", async () => {
    await using server = await startSglangTestServer({ policy: createEchoPolicy(), apiKey: "k-1" });
    const engine = createSglangEngine({ url: server.url, apiKey: "k-1" });
    await engine.probe({ promptIds: [5] });
    await engine.generate(toRequest({ sessionId: "tâche 7" }));
    expect(server.requests.map(({ routingKey }) => routingKey)).toEqual([
      "turnwright-probe",
      "t%C3%A2che%207",
    ]);
    await engine.close();
    const other = createSglangEngine({ url: server.url });
    expect(await failureOf(other.describe())).toEqual({
      code: "engine/unauthorized",
      retryable: false,
      message:
        `Cannot describe the engine at ${server.url}: HTTP 401 (Unauthorized), ` +
        "expected an SGLang server (a valid apiKey)",
    });
    await other.close();
  });

  test("the error for an address with OpenAI's path names the right one", async () => {
    await using server = await startSglangTestServer({ policy: createEchoPolicy() });
    const engine = createSglangEngine({ url: `${server.url}/v1` });
    const { message } = await failureOf(engine.describe());
    expect(message).toMatch(/^Cannot describe the engine at \S+\/v1: HTTP 404/);
    expect(message).toContain(`; give the server's own address, ${server.url}, without /v1`);
    await engine.close();
  });

  test("a server may live under a path", async () => {
    const paths: string[] = [];
    const proxy = await listen(0, (request, response) => {
      paths.push(request.url ?? "");
      response.end('{"model_path": "m"}');
    });
    const engine = createSglangEngine({ url: `${proxy.url}/engines/7/`, mode: "router" });
    expect(await engine.describe()).toMatchObject({
      url: `${proxy.url}/engines/7`,
      model: "m",
    });
    expect(paths).toEqual(["/engines/7/model_info", "/engines/7/v1/models"]);
    await engine.close();
    await proxy.close();
  });
});

describe("describe()", () => {
  test("reports model, version, context length and convention of a server", async () => {
    await using server = await startSglangTestServer({
      modelPath: "org/model",
      weightVersion: "12",
      contextLength: 4_096,
    });
    const engine = createSglangEngine({ url: server.url });
    expect(await engine.describe()).toEqual({
      kind: "sglang",
      url: server.url,
      model: "org/model",
      policyVersion: "12",
      logprobConvention: "tempered",
      contextLength: 4_096,
      columns: ["keptTokens", "topLogprobs"],
    });
    await engine.close();
  });

  test("reports the model of a router", async () => {
    await using server = await startSglangTestServer({ weightVersion: "12", contextLength: 4_096 });
    await using router = await startSglangTestRouter({ workers: [server.url] });
    const engine = createSglangEngine({ url: router.url, logprobConvention: "raw" });
    expect(await engine.describe()).toEqual({
      kind: "sglang",
      url: router.url,
      model: "test-model",
      policyVersion: "12",
      logprobConvention: "raw",
      contextLength: 4_096,
    });
    await engine.close();
  });

  test("says that a router has no workers", async () => {
    await using server = await startSglangTestServer();
    await using router = await startSglangTestRouter({ workers: [server.url], retryDelayMs: 0 });
    router.setHealthy(server.url, false);
    const engine = createSglangEngine({ url: router.url });
    expect(await failureOf(engine.describe())).toMatchObject({
      code: "engine/overloaded",
      retryable: true,
      message: expect.stringContaining("No available workers") as string,
    });
    await engine.close();
  });

  test("names the address and the remedy if no server listens", async () => {
    const { url, port } = await freeAddress();
    const engine = createSglangEngine({ url });
    expect(await failureOf(engine.describe())).toEqual({
      code: "engine/unreachable",
      retryable: true,
      message:
        `Cannot reach the engine at ${url}/workers: no connection ` +
        `(connect ECONNREFUSED 127.0.0.1:${port}), expected an SGLang server; ` +
        "is it running, and is the address right?",
    });
    await engine.close();
  });

  test("names the problem of a server that is not SGLang", async () => {
    const other = await listen(0, (_request, response) => void response.end("<html></html>"));
    const url = `http://localhost:${other.port}`;
    const engine = createSglangEngine({ url });
    expect(await failureOf(engine.describe())).toEqual({
      code: "engine/bad-reply",
      retryable: false,
      message:
        `Cannot describe the engine at ${url}: ` +
        "/model_info names no model_path, expected an SGLang server",
    });
    await engine.close();
    await other.close();
  });

  test("is bounded by its own deadline", async () => {
    const silent = await listen(0, () => undefined);
    const { now, sleep } = createManualClock({ skipUpToMs: 4_000 });
    const engine = createSglangEngine({
      url: silent.url,
      now,
      sleep,
      timeouts: { controlMs: 4_000 },
    });
    const failure = await failureOf(engine.describe());
    expect(failure.code).toBe("engine/unreachable");
    expect(failure.message).toContain("no answer within 4000 ms");
    await engine.close();
    await silent.close();
  });
});

describe("probe()", () => {
  test("samples one token and describes the server", async () => {
    await using server = await startSglangTestServer({
      policy: createEchoPolicy(),
      weightVersion: "3",
    });
    const engine = createSglangEngine({ url: server.url, random: () => 0.5 });
    expect(await engine.probe()).toMatchObject({ kind: "sglang", policyVersion: "3" });
    expect(server.requests).toMatchObject([
      { rid: "0.5-0~turnwright-probe", inputIds: [0], maxNewTokens: 1, outputIds: [0] },
    ]);
    await engine.close();
  });

  test("fails if logprobs are missing", async () => {
    const alter = (reply: Record<string, unknown>): unknown => ({
      ...reply,
      meta_info: { ...(reply["meta_info"] as object), output_token_logprobs: undefined },
    });
    await using server = await startSglangTestServer({ faults: [{ kind: "alter", alter }] });
    const engine = createSglangEngine({ url: server.url, retry: { maxAttempts: 1 } });
    const failure = await failureOf(engine.probe());
    expect(failure.code).toBe("engine/bad-reply");
    expect(failure.message).toContain("meta_info.output_token_logprobs is absent");
    await engine.close();
  });
});

describe("several addresses", () => {
  const sessions = Array.from({ length: 60 }, (_, index) => `session-${index}`);

  test("each session stays on one worker, and all workers get sessions", async () => {
    await using first = await startSglangTestServer({ policy: createEchoPolicy() });
    await using second = await startSglangTestServer({ policy: createEchoPolicy() });
    await using third = await startSglangTestServer({ policy: createEchoPolicy() });
    const servers = [first, second, third];
    const engine = createSglangEngine({ url: servers.map(({ url }) => url) });
    for (const round of [0, 1]) {
      await Promise.all(
        sessions.map((sessionId) =>
          engine.generate(toRequest({ sessionId, requestId: `${round}-${sessionId}-` })),
        ),
      );
    }
    await engine.close();
    const seen = servers.map(({ requests }) => requests.map(({ routingKey }) => routingKey));
    for (const [index, keys] of seen.entries()) {
      const own = new Set(keys);
      expect(own.size).toBeGreaterThan(5);
      expect(keys).toHaveLength(own.size * 2);
      for (const other of seen.slice(index + 1)) {
        expect(other.filter((key) => own.has(key))).toEqual([]);
      }
    }
  });

  test("a session moves to another worker while its own is down, and returns later", async () => {
    await using first = await startSglangTestServer({ policy: createEchoPolicy() });
    const second = await startSglangTestServer({ policy: createEchoPolicy() });
    const clock = createManualClock({ skipUpToMs: 1_000 });
    const { now, sleep } = clock;
    const url = [first.url, second.url];
    const engine = createSglangEngine({ url, now, sleep, random: () => 0.5 });
    const play = async (sessionId: string): Promise<void> => {
      await engine.generate(toRequest({ sessionId }));
    };
    for (const sessionId of sessions) await play(sessionId);
    const own = new Set(second.requests.map(({ routingKey }) => routingKey));
    const sessionId = sessions.find((id) => own.has(id)) ?? "";
    expect(first.requests).toHaveLength(60 - own.size);

    await second.close();
    await play(sessionId);
    expect(first.requests.at(-1)?.routingKey).toBe(sessionId);
    const { length: attempts } = clock.sleeps.filter((ms) => ms <= 1_000);
    // The first attempt failed; while the worker is passed over none does.
    await play(sessionId);
    expect(clock.sleeps.filter((ms) => ms <= 1_000)).toHaveLength(attempts);

    await using restarted = await startSglangTestServer({
      policy: createEchoPolicy(),
      port: second.port,
    });
    await clock.advance(5_000);
    await play(sessionId);
    expect(restarted.requests.map(({ routingKey }) => routingKey)).toEqual([sessionId]);
    await engine.close();
  });

  test("describe() asks the next server if one is down", async () => {
    const { url } = await freeAddress();
    await using server = await startSglangTestServer({ modelPath: "there" });
    const engine = createSglangEngine({ url: [url, server.url] });
    expect(await engine.describe()).toMatchObject({ url: server.url, model: "there" });
    await engine.close();
  });
});

describe("options that cannot be used", () => {
  test.each([
    [
      { url: "localhost:30000" },
      'Cannot use "localhost:30000" as the engine\'s url: expected one such as http://127.0.0.1:30000',
    ],
    [{ url: [] }, "Cannot use an empty list as url: expected a URL"],
    [
      { url: ["http://a", "http://b"], mode: "router" },
      'Cannot use 2 urls in mode "router": expected one',
    ],
    [
      { url: "http://a", apiKey: "two words" },
      "Cannot use the apiKey: expected visible ASCII characters only",
    ],
    [
      { url: "http://a", timeouts: { requestMs: 0 } },
      "Cannot use 0 as timeouts.requestMs: expected a number of at least 1",
    ],
    [
      { url: "http://a", retry: { maxAttempts: 0 } },
      "Cannot use 0 as retry.maxAttempts: expected a number, 1 to 1000",
    ],
    [
      { url: "http://a", maxConnections: Number.NaN },
      "Cannot use NaN as maxConnections: expected a number, 1 to 1000000",
    ],
  ] as [SglangEngineOptions, string][])("%o", (options, message) => {
    expect(() => createSglangEngine(options)).toThrow(message);
  });
});
