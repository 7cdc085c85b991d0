import { describe, expect, test } from "vitest";
import type { ServerFault, VllmRelease } from "../../src/testing/index.ts";
import { vllmError } from "./failures.ts";
import { failureOf, toRequest } from "./request.ts";
import { backOff, SAMPLED } from "./under-test.ts";
import type { VllmApi } from "./faulty-engines.ts";
import { ONCE, startFaultyVllm as start } from "./faulty-engines.ts";

const APIS: readonly VllmApi[] = ["generate", "completions"];

describe("a request that the engine refuses without sampling", () => {
  const refusals: [ServerFault, string, boolean, string][] = [
    [
      vllmError(
        400,
        "This model's maximum context length is 8 tokens. However, you requested 4 output tokens " +
          "and your prompt contains at least 5 input tokens, for a total of at least 9 tokens.",
        "BadRequestError",
        "input_tokens",
      ),
      "engine/prompt-too-long",
      false,
      "HTTP 400 (This model's maximum context length is 8 tokens.",
    ],
    [
      vllmError(
        400,
        "The decoder prompt (length 8) plus the number of requested output tokens (at least 1) is " +
          "longer than the maximum model length of 8.",
        "BadRequestError",
      ),
      "engine/prompt-too-long",
      false,
      "expected prompt and output to fit the context",
    ],
    [
      vllmError(
        400,
        "max_tokens=99 cannot be greater than max_model_len=max_total_tokens=8. Please request " +
          "fewer output tokens.",
        "BadRequestError",
        "max_tokens",
      ),
      "engine/prompt-too-long",
      false,
      "max_tokens=99",
    ],
    [
      vllmError(400, "1 validation error:\n  Field required", "Bad Request", "body.token_ids"),
      "engine/bad-request",
      false,
      "HTTP 400 (1 validation error: Field required), expected a request that it accepts",
    ],
    [
      vllmError(400, "Token id 999999 is out of vocabulary", "BadRequestError"),
      "engine/bad-request",
      false,
      "HTTP 400 (Token id 999999 is out of vocabulary)",
    ],
    [
      { kind: "status", status: 401, body: { error: "Unauthorized" } },
      "engine/unauthorized",
      false,
      "HTTP 401 (Unauthorized), expected a valid apiKey",
    ],
    [
      vllmError(422, "unprocessable", "UnprocessableEntityError"),
      "engine/bad-request",
      false,
      "HTTP 422 (unprocessable)",
    ],
  ];
  describe.each(APIS)("%s", (api) => {
    test.each(refusals)("%o fails as %s", async (fault, code, retryable, message) => {
      await using tested = await start(api, [fault]);
      const failure = await failureOf(tested.engine.generate(toRequest()));
      expect(failure).toMatchObject({ code, retryable });
      expect(failure.message).toContain(`Cannot sample request a at ${tested.server.url}: `);
      expect(failure.message).toContain(message);
      expect(tested.server.stats).toMatchObject({ generateCount: 1, abortCount: 0 });
      expect(backOff(tested.clock)).toEqual([]);
    });

    test("503 while the server scales is retried, and counts as nothing discarded", async () => {
      const body = { error: "The model is currently scaling. Please try again later." };
      const fault: ServerFault = { kind: "status", status: 503, body };
      await using tested = await start(api, [fault, fault]);
      const generation = await tested.engine.generate(toRequest());
      expect(generation).toMatchObject({ ...SAMPLED, discarded: [] });
      expect(generation.pieces.map(({ requestId }) => requestId)).toEqual(["r2~a"]);
      expect(backOff(tested.clock)).toEqual([187.5, 375]);
      expect(tested.server.stats).toMatchObject({ generateCount: 3, abortCount: 0 });
    });

    test("a model that is not served is named beside those that are", async () => {
      await using tested = await start(api, [], {
        model: "other",
        server: { servedModels: ["org/base", "adapter-1"] },
      });
      expect(await failureOf(tested.engine.generate(toRequest()))).toEqual({
        code: "engine/bad-request",
        retryable: false,
        message:
          `Cannot sample request a at ${tested.server.url}: HTTP 404 (The model \`other\` does not ` +
          "exist. Valid aliases: org/base, adapter-1.), expected model to be one that is served: " +
          '"org/base", "adapter-1"',
      });
      expect(tested.server.stats.generateCount).toBe(1);
    });
  });

  test("a temperature that the engine would raise in silence is not sent", async () => {
    await using tested = await start("generate", []);
    const request = toRequest({ sampling: { temperature: 0.005 } });
    expect(await failureOf(tested.engine.generate(request))).toEqual({
      code: "engine/bad-request",
      retryable: false,
      message:
        `Cannot sample request a at ${tested.server.url}: a temperature of 0.005, which vLLM ` +
        "raises to 0.01, expected 0, or at least 0.01",
    });
    expect(tested.server.stats.generateCount).toBe(0);
  });
});

describe.each(APIS)("%s: a request that may have been sampled", (api) => {
  test("an internal error of the engine is recorded, and the turn is requested again", async () => {
    await using tested = await start(api, [
      vllmError(500, "EngineCore died", "InternalServerError"),
    ]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject(SAMPLED);
    expect(generation.discarded).toEqual([
      { requestId: "a", reason: "HTTP 500 (EngineCore died)" },
    ]);
    expect(generation.pieces.map(({ requestId }) => requestId)).toEqual(["r1~a"]);
    // No server listens: it is asked once at each path.
    expect(tested.server.stats.abortCount).toBe(api === "generate" ? 1 : 2);
  });

  test("finish reason `error` under HTTP 200 is a server error, with its tokens counted", async () => {
    await using tested = await start(api, [
      { kind: "alter", alter: (reply) => withChoice(reply, { finish_reason: "error" }) },
    ]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject(SAMPLED);
    expect(generation.discarded).toEqual([
      { requestId: "a", reason: 'choices[0].finish_reason is "error"', tokenCount: 4 },
    ]);
  });
});

type Reply = Record<string, unknown> & { choices: Record<string, unknown>[] };

/** A reply that does not list the prompt. */
function withoutPrompt(reply: Record<string, unknown>): unknown {
  return withChoice(reply, { prompt_token_ids: null });
}

function withChoice(reply: Record<string, unknown>, changes: Record<string, unknown>): unknown {
  const [choice] = (reply as Reply).choices;
  return { ...reply, choices: [{ ...choice, ...changes }] };
}

describe("invalid logprobs", () => {
  test.each([
    [
      "generate",
      "choices[0].logprobs.content[2].logprob, of sampled id 12, is -9999, expected a logarithm above -9999",
    ],
    [
      "completions",
      "choices[0].logprobs.token_logprobs[2], of sampled id 12, is null, expected a finite logarithm, at most 0",
    ],
  ] as [VllmApi, string][])("%s: a missing one fails as `engine/nan`", async (api, message) => {
    await using tested = await start(api, [{ kind: "null-logprob", position: 2 }], ONCE);
    expect(await failureOf(tested.engine.generate(toRequest()))).toEqual({
      code: "engine/nan",
      retryable: false,
      message: `Cannot sample request a at ${tested.server.url}: ${message}`,
    });
    expect(tested.server.stats.generateCount).toBe(1);
  });

  test.each(APIS)("%s: minus infinity arrives as the floor, and fails alike", async (api) => {
    const logprobs = [-1, Number.NEGATIVE_INFINITY];
    await using tested = await start(api, [], { turns: [{ outputIds: [10, 2], logprobs }] });
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure.code).toBe("engine/nan");
    expect(failure.message).toContain(
      "of sampled id 2, is -9999, expected a logarithm above -9999",
    );
  });

  test.each(APIS)("%s: a logit in place of a logprob fails as `engine/bad-reply`", async (api) => {
    await using tested = await start(api, [], {
      turns: [{ outputIds: [10, 2], logprobs: [-1, 7.5] }],
      ...ONCE,
    });
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure.code).toBe("engine/bad-reply");
    expect(failure.message).toContain("of sampled id 2, is 7.5, expected a finite logarithm");
  });

  test.each(APIS)("%s: NaN, which the server cannot write, is sampled once more", async (api) => {
    await using tested = await start(api, [{ kind: "nan-happened", afterTokens: 1 }]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject(SAMPLED);
    expect(generation.discarded).toEqual([{ requestId: "a", reason: "NaN happened" }]);
  });
});

/** The reply with its last token twice. */
function repeatLast(reply: Record<string, unknown>): unknown {
  const [choice] = (reply as Reply).choices;
  const twice = (list: unknown): unknown => (Array.isArray(list) ? [...list, list.at(-1)] : list);
  const logprobs = Object.fromEntries(
    Object.entries(choice?.["logprobs"] ?? {}).map(([name, list]) => [name, twice(list)]),
  );
  return withChoice(reply, { token_ids: twice(choice?.["token_ids"]), logprobs });
}

describe("a reply that cannot be used fails as `engine/bad-reply`, naming the field", () => {
  type Alter = (reply: Record<string, unknown>) => unknown;
  const inBoth: [string, Alter, string][] = [
    ["null", () => null, "the reply is null"],
    ["a list", (reply) => [reply, reply], "the reply is a list of 2"],
    ["no choices", () => ({}), "choices is absent, expected a list"],
    [
      "two choices",
      (reply) => ({ ...reply, choices: [1, 2] }),
      "choices is [1,2], expected a list of one",
    ],
    [
      "no ids",
      (reply) => withChoice(reply, { token_ids: undefined }),
      "choices[0].token_ids is absent, expected a list of ids; return_token_ids needs vLLM 0.10.2 or newer",
    ],
    [
      "ids of another kind",
      (reply) => withChoice(reply, { token_ids: ["10", 11, 12, 2] }),
      'choices[0].token_ids[0] is "10", expected an id',
    ],
    [
      "a negative id",
      (reply) => withChoice(reply, { token_ids: [10, -1, 12, 2] }),
      "choices[0].token_ids[1] is -1",
    ],
    [
      "other ids than the logprobs name",
      (reply) => withChoice(reply, { token_ids: [10, 11, 13, 2] }),
      ", as in choices[0].token_ids",
    ],
    [
      "fewer ids than logprobs",
      (reply) => withChoice(reply, { token_ids: [10, 11, 12] }),
      "has 4 entries and choices[0].token_ids 3, expected one logprob for each id",
    ],
    [
      "no logprobs",
      (reply) => withChoice(reply, { logprobs: null }),
      "choices[0].logprobs is null, expected an object",
    ],
    [
      "an unknown finish reason",
      (reply) => withChoice(reply, { finish_reason: "tired" }),
      'choices[0].finish_reason is "tired"',
    ],
    [
      "no finish reason",
      (reply) => withChoice(reply, { finish_reason: null }),
      "choices[0].finish_reason is null",
    ],
    [
      "another prompt length",
      (reply) => withoutPrompt({ ...reply, usage: { prompt_tokens: 4 } }),
      "usage.prompt_tokens is 4, expected the 3 that were sent",
    ],
    [
      "another output length",
      (reply) => ({ ...reply, usage: { completion_tokens: 5 } }),
      "usage.completion_tokens is 5, expected 4",
    ],
    [
      "a count of another kind",
      (reply) => withoutPrompt({ ...reply, usage: { prompt_tokens: "3" } }),
      'usage.prompt_tokens is "3", expected a count',
    ],
    [
      "another prompt",
      (reply) => withChoice(reply, { prompt_token_ids: [1, 9, 3] }),
      "prompt_token_ids[1] is 9, expected 2, as it was sent",
    ],
    [
      "a longer prompt, as where the server adds a token of its own",
      (reply) => withChoice(reply, { prompt_token_ids: [0, 1, 2, 3] }),
      "prompt_token_ids has 4 ids, expected the 3 that were sent",
    ],
    [
      "a prompt of another kind",
      (reply) => ({ ...reply, ...(withChoice(reply, {}) as object), prompt_token_ids: "1 2 3" }),
      'prompt_token_ids is "1 2 3", expected a list of ids',
    ],
    [
      "a stop id that is not the last id",
      (reply) => withChoice(reply, { stop_reason: 7 }),
      "sampling stopped on id 7 but the last id is 2",
    ],
    [
      "nothing sampled",
      (reply) => ({
        choices: [
          {
            ...(reply as Reply).choices[0],
            token_ids: [],
            logprobs: null,
            weight_versions: [],
          },
        ],
      }),
      "no ids were sampled",
    ],
  ];
  describe.each(APIS)("%s", (api) => {
    test.each(inBoth)("%s", async (name, alter, message) => {
      const altered: Alter = (reply) =>
        api === "completions" && name === "a prompt of another kind"
          ? alter({ ...reply, ...(withChoice(reply, { prompt_token_ids: undefined }) as object) })
          : alter(reply);
      await using tested = await start(api, [{ kind: "alter", alter: altered }], ONCE);
      const failure = await failureOf(tested.engine.generate(toRequest()));
      expect(failure).toMatchObject({ code: "engine/bad-reply", retryable: false });
      expect(failure.message).toContain(message);
      expect(tested.server.stats.generateCount).toBe(1);
    });

    test("more ids than were asked for", async () => {
      await using tested = await start(api, [{ kind: "alter", alter: repeatLast }], ONCE);
      const failure = await failureOf(tested.engine.generate(toRequest({ maxNewTokens: 4 })));
      expect(failure.code).toBe("engine/bad-reply");
      expect(failure.message).toContain("5 ids were sampled, expected at most 4");
    });
  });
});

test("a wrong count of a prompt that the reply lists, as gateways return it, loses nothing", async () => {
  const alter = (reply: Record<string, unknown>): unknown => ({
    ...reply,
    usage: { prompt_tokens: 1 },
  });
  await using tested = await start("completions", [{ kind: "alter", alter }]);
  const generation = await tested.engine.generate(toRequest());
  expect(generation).toMatchObject({ ...SAMPLED, promptTokenCount: 3, discarded: [] });
});

test("a wrong count of a prompt costs one reply of ids: the next ones list the prompt", async () => {
  const miscounted = (): ServerFault => ({
    kind: "alter",
    alter: (reply) => (reply["usage"] === null ? reply : { ...reply, usage: { prompt_tokens: 1 } }),
  });
  const faults = [miscounted(), miscounted(), miscounted()];
  await using tested = await start("generate", faults, { turns: [SAMPLED, SAMPLED, SAMPLED] });
  const lost = { requestId: "a", reason: "usage.prompt_tokens is 1" };
  expect(await tested.engine.generate(toRequest())).toMatchObject({
    ...SAMPLED,
    promptTokenCount: 3,
    discarded: [lost],
  });
  const streamed: number[] = [];
  const onTokens = ({ tokenIds }: { tokenIds: readonly number[] }): number =>
    streamed.push(...tokenIds);
  expect(await tested.engine.generate(toRequest({ requestId: "b" }), { onTokens })).toMatchObject({
    ...SAMPLED,
    promptTokenCount: 3,
    discarded: [],
  });
  expect(streamed).toEqual(SAMPLED.outputIds);
});

test("a wrong count of a prompt at a stream's end loses nothing", async () => {
  const alter = (chunk: Record<string, unknown>): unknown =>
    chunk["usage"] === null ? chunk : { ...chunk, usage: { prompt_tokens: 1 } };
  await using tested = await start("generate", [{ kind: "alter", alter }]);
  const generation = await tested.engine.generate(toRequest(), { onTokens: () => undefined });
  expect(generation).toMatchObject({ ...SAMPLED, promptTokenCount: 3, discarded: [] });
});

test("a stream for another prompt is refused before any of its tokens is reported", async () => {
  const alter = (chunk: Record<string, unknown>): unknown => ({
    ...chunk,
    prompt_token_ids: [1, 9, 3],
  });
  await using tested = await start("generate", [{ kind: "alter", alter }], {
    turns: [SAMPLED, SAMPLED],
  });
  const streamed: number[] = [];
  const onTokens = ({ tokenIds }: { tokenIds: readonly number[] }): number =>
    streamed.push(...tokenIds);
  const generation = await tested.engine.generate(toRequest(), { onTokens });
  expect(generation.discarded).toEqual([
    { requestId: "a", reason: "prompt_token_ids[1] is 9", tokenCount: 0 },
  ]);
  expect(streamed).toEqual(SAMPLED.outputIds);
});

describe("an id that its logprob does not name", () => {
  test.each([
    ["generate", "0.32", "content[2].token_id is 12, expected 13"],
    ["generate", "0.24", 'content[2].token is "token_id:12", expected "token_id:13"'],
    ["completions", "0.32", 'tokens[2] is "token_id:12", expected "token_id:13"'],
  ] as [VllmApi, VllmRelease, string][])("%s of %s: is refused", async (api, release, problem) => {
    const alter = (reply: Record<string, unknown>): unknown =>
      withChoice(reply, { token_ids: [10, 11, 13, 2] });
    await using tested = await start(api, [{ kind: "alter", alter }], {
      server: { release },
      retry: { maxAttempts: 1 },
    });
    const { code, message } = await failureOf(tested.engine.generate(toRequest()));
    expect(code).toBe("engine/bad-reply");
    expect(message).toContain(`choices[0].logprobs.${problem}, as in choices[0].token_ids`);
  });
});

describe("which version of the policy sampled what, as the ids-only API says it", () => {
  test.each([
    [
      [{ version: "1", start: 0, end: 3 }],
      "choices[0].weight_versions ends at token 3, expected the end, at 4",
    ],
    [
      [{ version: "1", start: 1, end: 4 }],
      'choices[0].weight_versions holds {"version":"1","start":1,"end":4}, expected a span that ' +
        "begins at token 0",
    ],
    ["1", 'choices[0].weight_versions holds "1", expected a span that begins at token 0'],
  ])("%j is refused", async (spans, message) => {
    const alter = (reply: Record<string, unknown>): unknown =>
      withChoice(reply, { weight_versions: spans });
    await using tested = await start("generate", [{ kind: "alter", alter }], {
      retry: { maxAttempts: 1 },
    });
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure.code).toBe("engine/bad-reply");
    expect(failure.message).toContain(message);
  });

  test("is the server's own version if the reply names none", async () => {
    const alter = (reply: Record<string, unknown>): unknown =>
      withChoice(reply, { weight_versions: null });
    const server = { isDevelopment: true, weightVersion: "9" };
    await using tested = await start("generate", [{ kind: "alter", alter }], { server });
    const { pieces } = await tested.engine.generate(toRequest());
    expect(pieces.map(({ policyVersion }) => policyVersion)).toEqual(["9"]);
  });
});

describe("a prompt that fills the context", () => {
  test.each(APIS)("%s: is too long, for any message of the server", async (api) => {
    await using tested = await start(api, [], { server: { contextLength: 3 } });
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure).toMatchObject({ code: "engine/prompt-too-long", retryable: false });
    expect(failure.message).toContain("expected prompt and output to fit the context");
  });

  test.each(APIS)("%s: with room for less than the budget is sampled to its end", async (api) => {
    const turns = [{ outputIds: [10, 11, 12, 13] }];
    await using tested = await start(api, [], { turns, server: { contextLength: 5 } });
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 4 }));
    expect(generation).toMatchObject({ outputIds: [10, 11], finish: { type: "length" } });
  });
});

describe.each(APIS)("%s: interruptions", (api) => {
  test("null ids under an abort count as no ids", async () => {
    const changes = {
      token_ids: null,
      logprobs: null,
      finish_reason: "abort",
      weight_versions: [],
    };
    await using tested = await start(api, [
      {
        kind: "alter",
        alter: (reply) => ({ choices: (withChoice(reply, changes) as Reply).choices }),
      },
    ]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject({ ...SAMPLED, discarded: [] });
  });
});

describe("the end of a turn", () => {
  test.each(APIS)("%s: the model's own end counts as a stop on its id", async (api) => {
    await using tested = await start(api, [], { turns: [{ outputIds: [10, 2] }] });
    const generation = await tested.engine.generate(toRequest({ stopTokenIds: [9] }));
    expect(generation).toMatchObject({ outputIds: [10, 2], finish: { type: "stop", matched: 2 } });
  });

  test.each(APIS)("%s: a stop id as the last id of the budget is a stop", async (api) => {
    await using tested = await start(api, [], { turns: [{ outputIds: [10, 9] }] });
    const request = toRequest({ maxNewTokens: 2, stopTokenIds: [9] });
    const generation = await tested.engine.generate(request);
    expect(generation.finish).toEqual({ type: "stop", matched: 9 });
  });

  test.each([
    ["generate", "0.32", { type: "stop", matched: "</answer>" }],
    ["generate", "0.24", { type: "stop" }],
    ["completions", "0.32", { type: "stop", matched: "</answer>" }],
  ] as [VllmApi, VllmRelease, object][])(
    "%s of %s: a stop string keeps the ids that completed it, and is named if the server names it",
    async (api, release, finish) => {
      const turns = [{ outputIds: [10, 11, 12], matched: "</answer>" }];
      await using tested = await start(api, [], { turns, server: { release } });
      const sampling = { extra: { stop: ["</answer>"] } };
      const generation = await tested.engine.generate(toRequest({ sampling }));
      expect(generation.outputIds).toEqual([10, 11, 12]);
      expect(generation.finish).toEqual(finish);
    },
  );

  test("repetition that the server looks for is named", async () => {
    await using tested = await start("generate", [
      { kind: "alter", alter: (reply) => withChoice(reply, { finish_reason: "repetition" }) },
    ]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation.finish).toEqual({ type: "stop", matched: "repetition" });
  });

  test("the context ends a turn of the ids-only API as `length`, before the budget does", async () => {
    await using tested = await start("generate", [], {
      turns: [{ outputIds: [10, 11, 12, 13, 14] }],
      server: { contextLength: 8 },
    });
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 100 }));
    expect(generation).toMatchObject({ finish: { type: "length" }, promptTokenCount: 3 });
    expect(generation.outputIds).toEqual([10, 11, 12, 13, 14]);
  });
});
