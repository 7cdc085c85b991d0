import { createManualClock } from "../../testing/manual-clock.ts";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import type {
  ChatCompletionsServer,
  ScriptedAnswer,
} from "../../engine/chat/chat-completions-server.fixture.ts";
import { startChatCompletionsServer } from "../../engine/chat/chat-completions-server.fixture.ts";
import { UsageError } from "../../errors.ts";
import type { ChatCallOptions, MeteredChatModel } from "./ai-sdk-chat-model.ts";
import { aiSdkChatModel, endpointChatModel } from "./ai-sdk-chat-model.ts";
import type { ChatEndpoint } from "./chat-endpoint.ts";
import type { ChatRequest } from "./chat-model.ts";
import type { AiSdkLanguageModel } from "./language-model-call.ts";

const signal = new AbortController().signal;
const request: ChatRequest = { messages: [{ role: "user", content: "Hello" }] };

/**
 * A clock and random source in which pauses take no time, and deadlines expire only by `expire()`.
 */
interface PauselessClock extends Required<Pick<ChatCallOptions, "now" | "sleep" | "random">> {
  readonly pauses: readonly number[];
  expire(): void;
}

function pauselessClock(timeoutMs = 120_000): PauselessClock {
  const pauses: number[] = [];
  const deadlines = new Set<() => void>();
  return {
    pauses,
    now: () => Date.UTC(2026, 0, 1),
    random: () => 0.5,
    expire: () => deadlines.forEach((pass) => pass()),
    async sleep(ms, { signal: inner } = {}) {
      if (ms !== timeoutMs) {
        pauses.push(ms);
        return;
      }
      await new Promise<void>((resolve, reject) => {
        deadlines.add(resolve);
        inner?.addEventListener("abort", () => {
          deadlines.delete(resolve);
          reject(inner?.reason as Error);
        });
      });
    },
  };
}

async function withServer(
  answers: readonly ScriptedAnswer[],
  run: (
    model: MeteredChatModel,
    server: ChatCompletionsServer,
    clock: PauselessClock,
  ) => Promise<void>,
  options: ChatCallOptions & { endpoint?: Partial<ChatEndpoint> } = {},
): Promise<void> {
  await using server = await startChatCompletionsServer(answers);
  const clock = pauselessClock();
  const endpoint = { baseUrl: server.baseUrl, model: "test-model", ...options.endpoint };
  const env = { THE_KEY: "k-123", EMPTY: "" };
  const model = endpointChatModel({ ...clock, ...options, endpoint, env });
  await run(model, server, clock);
  await model.close();
}

describe("a chat model over an OpenAI-compatible server", () => {
  test("sends the messages unchanged, and no unset fields", async () => {
    await withServer(["Hi"], async (model, server) => {
      const messages = [
        { role: "system", content: "You are Ann.\n" },
        { role: "user", content: " Hi! " },
        { role: "assistant", content: "a\u00e9\u{1F600}" },
        { role: "user", content: "" },
        { role: "user", content: "again" },
      ] as const;
      expect(await model.complete({ messages }, { signal })).toEqual({
        text: "Hi",
        inputTokenCount: 10,
        outputTokenCount: 5,
        finishReason: "stop",
      });
      expect(server.requests.map(({ path, body }) => ({ path, body }))).toEqual([
        { path: "/v1/chat/completions", body: { model: "test-model", messages } },
      ]);
      expect(server.requests[0]?.headers.authorization).toBeUndefined();
    });
  });

  test("sends temperature, token limit and seed if they are set", async () => {
    await withServer(["Hi"], async (model, server) => {
      await model.complete({ ...request, temperature: 0, maxTokens: 7, seed: 3 }, { signal });
      expect(server.requests[0]?.body).toMatchObject({ temperature: 0, max_tokens: 7, seed: 3 });
    });
  });

  test("sends the key and headers from environment variables", async () => {
    const endpoint = {
      apiKeyEnv: "THE_KEY",
      headers: { "x-plain": "1", "x-secret": { env: "THE_KEY" } },
    };
    await withServer(
      ["Hi"],
      async (model, server) => {
        await model.complete(request, { signal });
        expect(server.requests[0]?.headers).toMatchObject({
          authorization: "Bearer k-123",
          "x-plain": "1",
          "x-secret": "k-123",
        });
      },
      { endpoint },
    );
  });

  test("removes the key from a refusal that repeats it", async () => {
    const body = JSON.stringify({
      error: { message: "no access with Bearer k-123, retry: never" },
    });
    await withServer(
      [{ status: 401, body, headers: { "content-type": "application/json" } }],
      async (model) => {
        const error: unknown = await model.complete(request, { signal }).catch((thrown) => thrown);
        expect(error).toMatchObject({ code: "user/unauthorized" });
        expect((error as Error).message).toContain(
          "no access with Bearer [redacted], retry: never",
        );
        expect(inspect(error, { depth: 10 })).not.toContain("no access with Bearer k-123");
      },
      { endpoint: { apiKeyEnv: "THE_KEY" } },
    );
  });

  test("reuses its connection", async () => {
    await withServer(
      ["a", "b", "c"],
      async (model, server) => {
        for (const text of ["a", "b", "c"]) {
          expect(await model.complete(request, { signal })).toMatchObject({ text });
        }
        expect(server.connectionCount()).toBe(1);
      },
      { maxConcurrent: 1 },
    );
  });

  test("omits the model's reasoning", async () => {
    await withServer([{ content: "Hi", reasoning: "greet" }], async (model) => {
      expect(await model.complete(request, { signal })).toMatchObject({ text: "Hi" });
    });
  });

  test("distinguishes a cut reply from a complete one", async () => {
    await withServer([{ content: "Hi th", finishReason: "length" }], async (model) => {
      expect(await model.complete(request, { signal })).toMatchObject({
        text: "Hi th",
        finishReason: "length",
      });
    });
  });
});

describe("failures", () => {
  test("an overloaded or broken server is retried with growing pauses", async () => {
    const answers = [
      { status: 429, body: '{"error": {"message": "slow down"}}' },
      { status: 500, body: "oops" },
      { trouble: "cut" },
      "Hi",
    ] as const;
    await withServer(answers, async (model, server, clock) => {
      expect(await model.complete(request, { signal })).toMatchObject({ text: "Hi" });
      expect(clock.pauses).toEqual([750, 1500, 3000]);
      expect(server.requests).toHaveLength(4);
    });
  });

  test.each([
    ["overloaded", { status: 429, body: '{"error": {"message": "slow down"}}' }],
    ["overloaded", { status: 503, body: "" }],
    ["overloaded", { status: 529, body: "" }],
    ["server-error", { status: 500, body: "<html>" }],
    ["server-error", { status: 502, body: "" }],
    ["timeout", { status: 408, body: "" }],
    ["unreachable", { trouble: "cut" }],
    ["unreachable", { trouble: "cut-within" }],
    ["bad-reply", { status: 200, body: "{not json" }],
    ["bad-reply", { status: 200, body: '{"choices": []}' }],
    ["bad-reply", { status: 200, body: '{"answer": "Hi"}' }],
    ["bad-reply", { status: 200, body: "" }],
    ["empty-reply", { content: "" }],
    ["empty-reply", { content: null }],
    ["empty-reply", { content: " \n" }],
    ["empty-reply", { content: "", reasoning: "thinking", finishReason: "content_filter" }],
  ] as const)("`user/%s` after four attempts on %j", async (kind, answer) => {
    await withServer([answer, answer, answer, answer], async (model, server) => {
      await expect(model.complete(request, { signal })).rejects.toMatchObject({
        name: "RolloutError",
        code: `user/${kind}`,
        retryable: true,
        message: expect.stringMatching(
          /^Cannot get a reply from test-model: .* \(4 attempts\), expected /,
        ) as string,
      });
      expect(server.requests).toHaveLength(4);
    });
  });

  test.each([
    ["bad-request", { status: 400, body: '{"error": {"message": "context too long"}}' }],
    ["bad-request", { status: 404, body: "" }],
    ["bad-request", { status: 422, body: "" }],
    ["unauthorized", { status: 401, body: "" }],
    ["unauthorized", { status: 403, body: "" }],
    ["budget", { status: 429, body: '{"error": {"message": "x", "code": "insufficient_quota"}}' }],
    ["empty-reply", { content: "", reasoning: "still thinking", finishReason: "length" }],
  ] as const)("`user/%s` at once on %j", async (kind, answer) => {
    await withServer([answer], async (model, server, clock) => {
      await expect(model.complete(request, { signal })).rejects.toMatchObject({
        code: `user/${kind}`,
        retryable: false,
      });
      expect(server.requests).toHaveLength(1);
      expect(clock.pauses).toEqual([]);
    });
  });

  test("the server's error text is in the message", async () => {
    const body = '{"error": {"message": "context too long"}}';
    await withServer([{ status: 400, body }], async (model) => {
      await expect(model.complete(request, { signal })).rejects.toThrow(
        "Cannot get a reply from test-model: HTTP 400: context too long, " +
          "expected the server to accept the request",
      );
    });
  });

  test("reads the server's requested wait in seconds, as a date, or in milliseconds", async () => {
    const body = "{}";
    const answers = [
      { status: 429, body, headers: { "retry-after": "7" } },
      { status: 503, body, headers: { "retry-after": "Thu, 01 Jan 2026 00:00:03 GMT" } },
      { status: 429, body, headers: { "retry-after-ms": "40", "retry-after": "9" } },
      "Hi",
    ];
    await withServer(answers, async (model, _server, clock) => {
      await model.complete(request, { signal });
      expect(clock.pauses).toEqual([7000, 3000, 40]);
    });
  });

  test("a server that requests a longer wait than allowed is not retried", async () => {
    const answer = { status: 429, body: "{}", headers: { "retry-after": "3600" } };
    await withServer([answer], async (model, server) => {
      await expect(model.complete(request, { signal })).rejects.toMatchObject({
        code: "user/overloaded",
      });
      expect(server.requests).toHaveLength(1);
    });
  });

  test("`user/timeout` if no reply arrives in time", async () => {
    await withServer(
      [{ trouble: "hang" }],
      async (model, server, clock) => {
        const reply = model.complete(request, { signal });
        const failed = expect(reply).rejects.toMatchObject({
          code: "user/timeout",
          retryable: true,
          message:
            "Cannot get a reply from test-model: no reply within 120000 ms, " +
            "expected a reply with text",
        });
        await server.hanging();
        clock.expire();
        await failed;
      },
      { timeoutMs: 120_000 },
    );
  });

  test("one time limit covers all attempts and pauses, from the call's start", async () => {
    const clock = createManualClock();
    const busy = { status: 503, body: "{}" };
    await using server = await startChatCompletionsServer([
      busy,
      { trouble: "hang" },
      { trouble: "hang" },
    ]);
    const endpoint = { baseUrl: server.baseUrl, model: "test-model" };
    const options = { timeoutMs: 10_000, firstPauseMs: 8_000, maxConcurrent: 1, env: {}, endpoint };
    const model = endpointChatModel({ ...options, ...clock, random: () => 1 });
    const late = /no usable reply within 10000 ms; attempt 1 failed: HTTP 503/;
    const asking = expect(model.complete(request, { signal })).rejects.toThrow(late);
    await clock.untilSleeping(8_000);
    await clock.advance(8_000);
    const waiting = model.complete(request, { signal });
    const waited = expect(waiting).rejects.toThrow(/no reply within 10000 ms/);
    await server.hanging();
    await clock.advance(2_000);
    await asking;
    await server.hanging();
    await clock.advance(9_999);
    expect(clock.pendingCount).toBe(1);
    await clock.advance(1);
    await waited;
    expect(server.requests).toHaveLength(3);
    await model.close();
  });

  test("has no time limit by default", async () => {
    const clock = createManualClock();
    await using server = await startChatCompletionsServer([{ trouble: "hang" }]);
    const endpoint = { baseUrl: server.baseUrl, model: "test-model" };
    const model = endpointChatModel({ endpoint, env: {}, ...clock });
    const caller = new AbortController();
    const failed = expect(model.complete(request, { signal: caller.signal })).rejects.toThrow("up");
    await server.hanging();
    expect(clock.sleeps).toEqual([]);
    caller.abort(new Error("time is up"));
    await failed;
    await model.close();
  });

  test("`user/unreachable` if nothing listens", async () => {
    const server = await startChatCompletionsServer([]);
    await server[Symbol.asyncDispose]();
    const endpoint = { baseUrl: server.baseUrl, model: "m" };
    const model = endpointChatModel({ endpoint, env: {}, ...pauselessClock() });
    await expect(model.complete(request, { signal })).rejects.toMatchObject({
      code: "user/unreachable",
      retryable: true,
      message: expect.stringContaining("ECONNREFUSED") as string,
    });
  });

  test("a grader's failures are the grader's", async () => {
    await withServer(
      [{ status: 400, body: "" }],
      async (model) => {
        await expect(model.complete(request, { signal })).rejects.toMatchObject({
          code: "grader/bad-request",
        });
      },
      { party: "grader" },
    );
  });

  test("an abort rejects with its own reason, in the queue and during the call", async () => {
    await withServer(
      [{ trouble: "hang" }],
      async (model, server) => {
        const asking = new AbortController();
        const waiting = new AbortController();
        const first = model.complete(request, { signal: asking.signal });
        await server.hanging();
        const second = model.complete(request, { signal: waiting.signal });
        waiting.abort(new Error("second"));
        asking.abort(new Error("first"));
        await expect(first).rejects.toThrow("first");
        await expect(second).rejects.toThrow("second");
        expect(server.requests).toHaveLength(1);
      },
      { maxConcurrent: 1 },
    );
  });

  test("a call beyond the queue's limit is `user/overloaded`", async () => {
    await withServer(
      [{ trouble: "hang" }],
      async (model, server) => {
        const abort = new AbortController();
        const first = model.complete(request, { signal: abort.signal });
        await server.hanging();
        await expect(model.complete(request, { signal })).rejects.toMatchObject({
          code: "user/overloaded",
          message:
            "Cannot get a reply from test-model: 0 calls are already waiting, " +
            "expected a reply with text",
        });
        abort.abort(new Error("over"));
        await expect(first).rejects.toThrow("over");
      },
      { maxConcurrent: 1, maxWaiting: 0 },
    );
  });
});

describe("spending", () => {
  const prices = { inputUsd: 1, outputUsd: 10 };

  test.each([
    [{ content: "", reasoning_content: "hm" }, "has no text but reasoning"],
    [{ content: null, refusal: "I can't" }, "has no text but a refusal"],
    [{ content: "" }, "is empty"],
  ])("the usage of reply %j: %s", async (message, is) => {
    const body = JSON.stringify({ choices: [{ message, finish_reason: "stop" }] });
    await withServer(
      [{ status: 200, body }],
      async (model) => {
        await expect(model.complete(request, { signal })).rejects.toMatchObject({
          code: "user/empty-reply",
          message: `Cannot get a reply from test-model: the reply ${is} (it ended by stop), expected a reply with text`,
        });
      },
      { maxAttempts: 1 },
    );
  });

  test("prices count all attempts, including empty replies", async () => {
    await withServer(
      [{ content: "" }, "Hi"],
      async (model) => {
        expect(await model.complete(request, { signal })).toEqual({
          text: "Hi",
          inputTokenCount: 20,
          outputTokenCount: 10,
          costUsd: 120 / 1e6,
          finishReason: "stop",
        });
        expect(model.spent()).toEqual({
          inputTokenCount: 20,
          outputTokenCount: 10,
          costUsd: 120 / 1e6,
        });
      },
      { prices },
    );
  });

  test.each([
    [{ maxTokenCount: 30 }, "30 tokens are used of a budget of 30"],
    [{ maxCostUsd: 0.0001 }, "$0.00012 is spent of a budget of $0.0001"],
  ])("a call beyond the budget %j is `user/budget`", async (budget, why) => {
    await withServer(
      ["a", "b", "c"],
      async (model, server) => {
        await model.complete(request, { signal });
        await model.complete(request, { signal });
        await expect(model.complete(request, { signal })).rejects.toMatchObject({
          code: "user/budget",
          retryable: false,
          message: `Cannot get a reply from test-model: ${why}, expected calls within the budget`,
        });
        expect(server.requests).toHaveLength(2);
      },
      { budget, prices },
    );
  });

  test("a server without usage fails a budget", async () => {
    const answer = { content: "Hi", usage: null };
    await withServer([answer], async (model) => {
      expect(await model.complete(request, { signal })).toMatchObject({ inputTokenCount: 0 });
    });
    await withServer(
      [answer],
      async (model) => {
        await expect(model.complete(request, { signal })).rejects.toMatchObject({
          code: "user/bad-reply",
          retryable: false,
        });
      },
      { budget: { maxTokenCount: 100 } },
    );
  });

  test("a budget in dollars requires prices", () => {
    const endpoint = { baseUrl: "http://127.0.0.1:1/v1", model: "m" };
    expect(() => endpointChatModel({ endpoint, env: {}, budget: { maxCostUsd: 1 } })).toThrow(
      new UsageError("Cannot enforce `budget.maxCostUsd`: `prices` is absent, expected prices"),
    );
  });
});

describe("the endpoint", () => {
  test.each(["https://api.example.com/v1", "http://127.0.0.1:1/v1"])(
    "%s is refused if `apiKeyEnv` names no variable that is set, and the error shows no part of its value",
    (baseUrl) => {
      for (const apiKeyEnv of ["EMPTY", "ABSENT", "sk-pasted-key-0123456789"]) {
        const endpoint = { baseUrl, model: "m", apiKeyEnv };
        expect(() => endpointChatModel({ endpoint, env: { EMPTY: "" } })).toThrow(
          new UsageError(
            `Cannot use apiKeyEnv of the chat model at ${new URL(baseUrl).host}: its value is not the name ` +
              "of a variable that is set, expected the name of the variable that holds the secret, and not " +
              "the secret itself",
          ),
        );
      }
    },
  );

  test("a header with an unset variable is refused", () => {
    const headers = { "api-key": { env: "ABSENT" } };
    const endpoint = { baseUrl: "http://127.0.0.1:1/v1", model: "m", headers };
    expect(() => endpointChatModel({ endpoint, env: {} })).toThrow(
      "Cannot use header api-key of the chat model at 127.0.0.1:1: its value is not the name of a variable",
    );
  });

  test("a refused URL is shown without its password", () => {
    const baseUrl = "ftp://me:pass-word-1@x/v1?key=abc";
    expect(() => endpointChatModel({ endpoint: { baseUrl, model: "m" }, env: {} })).toThrow(
      'Cannot reach a chat model: `baseUrl` is "ftp://x/v1", expected a URL',
    );
  });

  test.each(["api.example.com", "ftp://x/v1", ""])("%j is not a URL", (baseUrl) => {
    expect(() => endpointChatModel({ endpoint: { baseUrl, model: "m" }, env: {} })).toThrow(
      `Cannot reach a chat model: \`baseUrl\` is ${JSON.stringify(baseUrl)}, ` +
        "expected a URL such as http://127.0.0.1:8000/v1",
    );
  });

  test.each([
    ["a password", "https://u:hunter2@x.example/v1"],
    ["a query", "https://x.example/v1?api_key=hunter2"],
  ])("%s in the URL is refused without repeating it", (held, baseUrl) => {
    const make = () => endpointChatModel({ endpoint: { baseUrl, model: "m" }, env: {} });
    expect(make).toThrow(`contains ${held}`);
    expect(make).not.toThrow(/hunter2/);
  });
});

describe("a chat model over an AI SDK model", () => {
  function sdkModel(doGenerate: (options: object) => Promise<object>): AiSdkLanguageModel {
    return {
      specificationVersion: "v3",
      provider: "test",
      modelId: "sdk-model",
      doGenerate,
    } as unknown as AiSdkLanguageModel;
  }

  test.each([
    [
      "version 3",
      { unified: "stop", raw: "end" },
      { inputTokens: { total: 100, cacheRead: 60 }, outputTokens: { total: 7 } },
    ],
    ["version 2", "stop", { inputTokens: 100, cachedInputTokens: 60, outputTokens: 7 }],
  ])("reads the counts of %s", async (_version, finishReason, usage) => {
    const content = [
      { type: "reasoning", text: "hm" },
      { type: "text", text: "Hi " },
      { type: "text", text: "there" },
    ];
    const model = aiSdkChatModel({
      model: sdkModel(async () => ({ content, finishReason, usage })),
      prices: { inputUsd: 10, outputUsd: 100, cachedInputUsd: 1 },
    });
    expect(model.name).toBe("sdk-model");
    expect(await model.complete(request, { signal })).toEqual({
      text: "Hi there",
      inputTokenCount: 100,
      outputTokenCount: 7,
      costUsd: (40 * 10 + 60 * 1 + 7 * 100) / 1e6,
      finishReason: "stop",
    });
  });

  test.each([
    ["AI_LoadAPIKeyError", "unauthorized"],
    ["AI_NoSuchModelError", "bad-request"],
    ["TypeError", "model-error"],
  ])("%s is `user/%s`", async (name, kind) => {
    const error = Object.assign(new Error("why"), { name });
    const model = aiSdkChatModel({
      model: sdkModel(() => Promise.reject(error)),
      ...pauselessClock(),
    });
    await expect(model.complete(request, { signal })).rejects.toMatchObject({
      code: `user/${kind}`,
      cause: error,
    });
  });

  test("a model that ignores its signal is not awaited", async () => {
    const clock = pauselessClock();
    const model = aiSdkChatModel({
      model: sdkModel(() => {
        queueMicrotask(() => clock.expire());
        return new Promise(() => undefined);
      }),
      ...clock,
      timeoutMs: 120_000,
      maxConcurrent: 1,
    });
    // The second call starts although the first never returned.
    for (let call = 0; call < 2; call++) {
      await expect(model.complete(request, { signal })).rejects.toMatchObject({
        code: "user/timeout",
      });
    }
  });
});
