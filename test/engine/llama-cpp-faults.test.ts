import { describe, expect, test } from "vitest";
import { llamaCppError } from "./failures.ts";
import { failureOf, toRequest } from "./request.ts";
import { backOff, SAMPLED } from "./under-test.ts";
import { ONCE, startFaultyLlamaCpp as start } from "./faulty-engines.ts";

describe("a request that the server refuses without sampling", () => {
  test.each([
    [
      400,
      "exceed_context_size_error",
      "request (2000 tokens) exceeds the available context size (1024 tokens), try increasing it",
      "engine/prompt-too-long",
      "expected prompt and output to fit the context",
    ],
    [
      400,
      "exceed_context_size_error",
      "input (9 tokens) is larger than the max context size (8 tokens). skipping",
      "engine/prompt-too-long",
      "expected prompt and output to fit the context",
    ],
    [
      400,
      "invalid_request_error",
      "Prompt contains invalid tokens",
      "engine/bad-request",
      "expected a request that it accepts",
    ],
    [401, "authentication_error", "Invalid API Key", "engine/unauthorized", "a valid apiKey"],
    [
      501,
      "not_supported_error",
      "This server does not support completions",
      "engine/bad-request",
      "expected a server that supports the request",
    ],
  ])("HTTP %d %s (%s) fails as %s", async (status, type, message, code, expected) => {
    await using tested = await start([llamaCppError(status, type, message)]);
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure).toMatchObject({ code, retryable: false });
    expect(failure.message).toContain(
      `Cannot sample request a at ${tested.server.url}: HTTP ${status} (${message})`,
    );
    expect(failure.message).toContain(expected);
    expect(tested.server.stats.generateCount).toBe(1);
    expect(backOff(tested.clock)).toEqual([]);
  });

  test("503 while the model loads is retried, and counts as nothing discarded", async () => {
    const fault = llamaCppError(503, "unavailable_error", "Loading model");
    await using tested = await start([fault, fault]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject({ ...SAMPLED, discarded: [] });
    expect(backOff(tested.clock)).toEqual([187.5, 375]);
  });
});

test("a turn that the server cancelled is recorded and requested again", async () => {
  await using tested = await start([{ kind: "abort-after", tokens: 2 }]);
  const generation = await tested.engine.generate(toRequest());
  expect(generation).toMatchObject(SAMPLED);
  expect(generation.discarded).toHaveLength(1);
  expect(generation.discarded[0]?.reason).toContain("HTTP 500 (Aborted)");
  expect(generation.pieces).toEqual([
    { requestId: "r1~a", tokenCount: 4, policyVersion: "", finish: "stop" },
  ]);
});

describe("invalid logprobs", () => {
  test("a null one fails as `engine/nan`", async () => {
    await using tested = await start([{ kind: "null-logprob", position: 2 }], ONCE);
    expect(await failureOf(tested.engine.generate(toRequest()))).toEqual({
      code: "engine/nan",
      retryable: false,
      message:
        `Cannot sample request a at ${tested.server.url}: ` +
        "completion_probabilities[2].logprob, of sampled id 12, is null, " +
        "expected a finite logarithm, at most 0",
    });
  });

  test("the floor for a probability of 0 fails alike", async () => {
    const logprobs = [-1, Number.NEGATIVE_INFINITY];
    await using tested = await start([], { turns: [{ outputIds: [10, 2], logprobs }] });
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure.code).toBe("engine/nan");
    expect(failure.message).toContain(
      "of sampled id 2, is -3.4028234663852886e+38, expected a logarithm above -1e+30",
    );
  });

  test("a server that speculates reports certainty, which is not believed", async () => {
    await using tested = await start([], { server: { speculates: true }, ...ONCE });
    expect(await failureOf(tested.engine.generate(toRequest()))).toEqual({
      code: "engine/nan",
      retryable: false,
      message:
        `Cannot sample request a at ${tested.server.url}: ` +
        "completion_probabilities[0], of sampled id 10, has no probability, " +
        "expected one; start the server without speculative decoding",
    });
  });
});

describe("a reply that cannot be used fails as `engine/bad-reply`, naming the field", () => {
  type Reply = Record<string, unknown> & { completion_probabilities: object[] };
  const altered: [string, (reply: Reply) => unknown, string][] = [
    ["null", () => null, "the reply is null"],
    ["a list", (reply) => [reply, reply], "the reply is a list of 2"],
    [
      "no ids",
      () => ({ stop_type: "eos" }),
      "tokens is absent, expected a list of ids; return_tokens needs llama.cpp",
    ],
    ["an id that is text", (reply) => ({ ...reply, tokens: ["10"] }), 'tokens[0] is "10"'],
    ["nothing sampled", (reply) => ({ ...reply, tokens: [] }), "no ids were sampled"],
    [
      "another output length",
      (reply) => ({ ...reply, tokens_predicted: 5 }),
      "tokens_predicted is 5, expected 4",
    ],
    [
      "another prompt length",
      (reply) => ({ ...reply, tokens_evaluated: 4 }),
      "tokens_evaluated is 4, expected the 3 that were sent",
    ],
    [
      "an unknown stop",
      (reply) => ({
        ...reply,
        tokens: [10, 11, 12, 13],
        completion_probabilities: undefined,
        stop_type: "none",
      }),
      'stop_type is "none", expected `eos`, `word` or `limit`',
    ],
    [
      "an entry that is none",
      (reply) => ({ ...reply, completion_probabilities: [1] }),
      "completion_probabilities[0] is 1, expected an object",
    ],
    [
      "entries of other ids",
      (reply) => ({ ...reply, tokens: [10, 11, 13, 2] }),
      "completion_probabilities is of ids [10,11,12,2], expected those in tokens, in order",
    ],
    [
      "a prompt of which a part was dropped",
      (reply) => ({ ...reply, truncated: true, tokens_cached: 4 }),
      "tokens_cached is 4: the server dropped a part of the prompt, " +
        "expected 6; start it without --context-shift",
    ],
  ];
  test.each(altered)("%s", async (_name, alter, message) => {
    await using tested = await start(
      [{ kind: "alter", alter: (reply) => alter(reply as Reply) }],
      ONCE,
    );
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure).toMatchObject({ code: "engine/bad-reply", retryable: false });
    expect(failure.message).toContain(message);
    expect(tested.server.stats.generateCount).toBe(1);
  });

  test("more ids than were asked for", async () => {
    const alter = (reply: Record<string, unknown>): unknown => ({
      ...reply,
      tokens: [10, 11, 12, 13, 14],
    });
    await using tested = await start([{ kind: "alter", alter }], ONCE);
    const failure = await failureOf(tested.engine.generate(toRequest({ maxNewTokens: 4 })));
    expect(failure.code).toBe("engine/bad-reply");
    expect(failure.message).toContain("5 ids were sampled, expected at most 4");
  });
});

describe("the end of a turn", () => {
  test("the context ends it as `length`, before the budget does", async () => {
    await using tested = await start([], {
      turns: [{ outputIds: [10, 11, 12, 13, 14] }],
      server: { contextLength: 8 },
    });
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 100 }));
    expect(generation.outputIds).toEqual([10, 11, 12, 13, 14]);
    expect(generation.finish).toEqual({ type: "length" });
  });

  test("the model's own end counts as a stop on its id", async () => {
    await using tested = await start([], {
      turns: [{ outputIds: [10, 7] }],
      server: { endTokenIds: [7] },
    });
    const generation = await tested.engine.generate(toRequest({ stopTokenIds: [2] }));
    expect(generation).toMatchObject({ outputIds: [10, 7], finish: { type: "stop", matched: 7 } });
  });

  test("tokens after a stop id that the server does not know are cut off and recorded", async () => {
    await using tested = await start([], { turns: [{ outputIds: [10, 9, 11, 12, 2] }] });
    const generation = await tested.engine.generate(toRequest({ stopTokenIds: [9] }));
    expect(generation).toEqual({
      outputIds: [10, 9],
      logprobs: [-0.0625, -0.125],
      finish: { type: "stop", matched: 9 },
      pieces: [{ requestId: "a", tokenCount: 2, policyVersion: "", finish: "stop" }],
      promptTokenCount: 3,
      cachedTokenCount: 0,
      discarded: [
        {
          requestId: "a",
          reason: "sampled after a stop id that the server does not know",
          tokenCount: 3,
        },
      ],
    });
  });

  test("with `ignore_eos` a stop id ends nothing", async () => {
    await using tested = await start([], { turns: [{ outputIds: [2, 10, 2] }] });
    const sampling = { extra: { ignore_eos: true } };
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 3, sampling }));
    expect(generation).toMatchObject({ outputIds: [2, 10, 2], discarded: [] });
  });

  test("a stop string leaves the ids that completed it", async () => {
    await using tested = await start([], {
      turns: [{ outputIds: [10, 11], matched: "</answer>" }],
    });
    const sampling = { extra: { stop: ["</answer>"] } };
    const generation = await tested.engine.generate(toRequest({ sampling }));
    expect(generation.outputIds).toEqual([10, 11]);
    expect(generation.finish).toEqual({ type: "stop", matched: "</answer>" });
  });
});

describe("tokens that end within a character", () => {
  const turns = [{ outputIds: [10, 200, 201, 202, 11, 2] }];

  test("get their logprobs from one short request each, with the tokens before them as prompt", async () => {
    await using tested = await start([], { turns, server: { partialIds: [200, 201] } });
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toEqual({
      outputIds: [10, 200, 201, 202, 11, 2],
      logprobs: [-0.0625, -0.125, -0.1875, -0.25, -0.3125, -0.375],
      finish: { type: "stop", matched: 2 },
      pieces: [{ requestId: "a", tokenCount: 6, policyVersion: "", finish: "stop" }],
      promptTokenCount: 3,
      cachedTokenCount: 0,
      discarded: [],
    });
    const { requests } = tested.server;
    expect(requests.map(({ inputIds, maxNewTokens }) => [inputIds, maxNewTokens])).toEqual([
      [[1, 2, 3], 16],
      [[1, 2, 3, 10], 1],
      [[1, 2, 3, 10, 200], 1],
    ]);
    expect(requests[1]?.samplingParams).toMatchObject({ n_probs: 1_024, temperature: 0 });
  });

  test("are read from all candidates if they are not among the likeliest", async () => {
    await using tested = await start([], {
      turns,
      server: { partialIds: [201], unlikelyIds: [201] },
    });
    const generation = await tested.engine.generate(toRequest());
    expect(generation.logprobs[2]).toBe(-0.1875);
    const counts = tested.server.requests.map(({ samplingParams }) => samplingParams["n_probs"]);
    expect(counts).toEqual([1, 1_024, 16_777_216]);
  });

  test("at the end of the turn, if the server would refuse to show its text", async () => {
    await using tested = await start([], {
      turns: [{ outputIds: [10, 200] }],
      server: { partialIds: [200] },
    });
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 2 }));
    expect(generation).toMatchObject({
      outputIds: [10, 200],
      logprobs: [-0.0625, -0.125],
      finish: { type: "length" },
      discarded: [],
    });
  });

  test("a server that misreads the field for unparsed text is asked without it", async () => {
    await using tested = await start([], { turns, server: { textGrammar: "refused" } });
    const first = await tested.engine.generate(toRequest());
    expect(first).toMatchObject({ outputIds: [10, 200, 201, 202, 11, 2], discarded: [] });
    expect(tested.server.stats.generateCount).toBe(2);
  });

  test("a turn whose text the server cannot show is sampled again, and recorded", async () => {
    await using tested = await start([], {
      turns: [{ outputIds: [10, 200] }],
      server: { release: "2026-08", partialIds: [200], textGrammar: "unknown" },
      retry: { maxAttempts: 2 },
    });
    const failure = await failureOf(tested.engine.generate(toRequest({ maxNewTokens: 2 })));
    expect(failure).toMatchObject({ code: "engine/server-error", retryable: true });
    expect(failure.message).toContain(
      "The model produced output that does not match the expected Content-only format",
    );
    expect(tested.server.stats.generateCount).toBe(2);
  });

  test("a failure on the way to a logprob has the turn sampled again, its tokens counted", async () => {
    const body = { error: { code: 503, message: "Loading model", type: "unavailable_error" } };
    await using tested = await start([undefined, { kind: "status", status: 503, body }], {
      turns,
      server: { partialIds: [200] },
    });
    const generation = await tested.engine.generate(toRequest());
    expect(generation.outputIds).toEqual([10, 200, 201, 202, 11, 2]);
    expect(generation.discarded).toEqual([
      {
        requestId: "a",
        reason: "no logprob of a token that ends within a character: HTTP 503 (Loading model)",
        tokenCount: 6,
      },
    ]);
  });

  test("without a complete token as a prompt, fails as `engine/nan`", async () => {
    await using tested = await start([], {
      turns: [{ outputIds: [200] }],
      server: { partialIds: [200] },
      ...ONCE,
    });
    const request = toRequest({ maxNewTokens: 1, stopTokenIds: [] });
    expect(await failureOf(tested.engine.generate(request))).toEqual({
      code: "engine/nan",
      retryable: false,
      message:
        `Cannot sample request a at ${tested.server.url}: no sampled id has a logprob, ` +
        "expected a stop id in the request, to request logprobs after it",
    });
  });
});
