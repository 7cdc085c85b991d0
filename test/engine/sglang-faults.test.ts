import { describe, expect, test } from "vitest";
import type { ServerFault } from "../../src/testing/index.ts";
import { failureOf, toRequest } from "./request.ts";
import { backOff, SAMPLED } from "./under-test.ts";
import { ONCE, startFaultySglang as start } from "./faulty-engines.ts";

describe("a request that the engine refuses without sampling", () => {
  const refusals: [ServerFault & { kind: "status" }, string, boolean, string][] = [
    [
      {
        kind: "status",
        status: 400,
        body: {
          error: {
            message: "The input (9 tokens) is longer than the model's context length (8 tokens).",
          },
        },
      },
      "engine/prompt-too-long",
      false,
      "Cannot sample request a at URL: HTTP 400 (The input (9 tokens) is longer than the model's " +
        "context length (8 tokens).), expected prompt and output to fit the context",
    ],
    [
      {
        kind: "status",
        status: 400,
        body: {
          error: {
            message:
              "Input length (9 tokens) exceeds the maximum allowed length (8 tokens). Use a shorter input or enable --allow-auto-truncate.",
          },
        },
      },
      "engine/prompt-too-long",
      false,
      "exceeds the maximum allowed length",
    ],
    [
      {
        kind: "status",
        status: 400,
        body: {
          error: {
            message: "Requested token count exceeds the model's maximum context length of 8.",
          },
        },
      },
      "engine/prompt-too-long",
      false,
      "Requested token count",
    ],
    [
      {
        kind: "status",
        status: 400,
        body: { object: "error", message: "rid: wrong type", type: "Bad Request", code: 400 },
      },
      "engine/bad-request",
      false,
      "HTTP 400 (rid: wrong type), expected a request that it accepts",
    ],
    [
      { kind: "status", status: 422, body: "Failed to deserialize" },
      "engine/bad-request",
      false,
      "HTTP 422 (Failed to deserialize)",
    ],
    [{ kind: "status", status: 404 }, "engine/bad-request", false, "HTTP 404, expected"],
    [
      { kind: "status", status: 401, body: { error: "Unauthorized" } },
      "engine/unauthorized",
      false,
      "HTTP 401 (Unauthorized), expected a valid apiKey",
    ],
    [{ kind: "status", status: 403 }, "engine/unauthorized", false, "HTTP 403"],
    [
      { kind: "status", status: 302, headers: { location: "/login" } },
      "engine/bad-reply",
      false,
      "HTTP 302, expected HTTP 200",
    ],
  ];
  test.each(refusals)("%o fails as %s", async (fault, code, retryable, message) => {
    await using tested = await start([fault]);
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure).toMatchObject({ code, retryable });
    expect(failure.message.replace(tested.server.url, "URL")).toContain(message);
    expect(tested.server.stats.generateCount).toBe(1);
    expect(backOff(tested.clock)).toEqual([]);
  });

  test.each([
    { kind: "status", status: 429 },
    { kind: "status", status: 408 },
    {
      kind: "status",
      status: 503,
      body: { object: "error", message: "The request queue is full.", type: "503", code: 503 },
    },
    {
      kind: "status",
      status: 503,
      body: {
        error: {
          type: "Service Unavailable",
          code: "no_available_workers",
          message: "No available workers",
        },
      },
    },
  ] as const)(
    "%o is tried again under a new id, and nothing counts as discarded",
    async (fault) => {
      await using tested = await start([fault, fault]);
      const generation = await tested.engine.generate(toRequest());
      expect(generation).toMatchObject({ ...SAMPLED, discarded: [] });
      expect(generation.pieces.map(({ requestId }) => requestId)).toEqual(["r2~a"]);
      expect(backOff(tested.clock)).toEqual([187.5, 375]);
      expect(tested.server.stats).toMatchObject({ generateCount: 3, abortCount: 0 });
    },
  );

  test("the server's `Retry-After` is waited for, up to the longest delay", async () => {
    const busy = (seconds: string): ServerFault => ({
      kind: "status",
      status: 429,
      headers: { "retry-after": seconds },
    });
    await using tested = await start([busy("3"), busy("900"), busy("soon")]);
    await tested.engine.generate(toRequest());
    expect(backOff(tested.clock)).toEqual([3_000, 10_000, 750]);
  });

  test("attempts and delays are bounded, and the last failure says how many there were", async () => {
    const fault: ServerFault = { kind: "status", status: 503, body: { message: "full" } };
    await using tested = await start(Array.from({ length: 10 }, () => fault));
    expect(await failureOf(tested.engine.generate(toRequest()))).toEqual({
      code: "engine/overloaded",
      retryable: true,
      message:
        `Cannot sample request r7~a at ${tested.server.url} (attempt 8): HTTP 503 (full), ` +
        "expected room in its queue",
    });
    expect(backOff(tested.clock)).toEqual([187.5, 375, 750, 1_500, 3_000, 6_000, 7_500]);
  });
});

describe("a request that may have been sampled", () => {
  test.each([
    [
      { kind: "status", status: 500, body: "Internal Server Error" },
      "HTTP 500 (Internal Server Error)",
    ],
    [
      {
        kind: "status",
        status: 504,
        body: { error: { code: "call_upstream_timeout", message: "timed out" } },
      },
      "HTTP 504 (timed out)",
    ],
    [
      {
        kind: "status",
        status: 503,
        body: { object: "error", message: "Request running timeout reached." },
      },
      "HTTP 503 (Request running timeout reached.)",
    ],
  ] as [ServerFault, string][])(
    "%o is aborted, recorded, and requested again",
    async (fault, reason) => {
      await using tested = await start([fault]);
      const generation = await tested.engine.generate(toRequest());
      expect(generation).toMatchObject(SAMPLED);
      expect(generation.discarded).toHaveLength(1);
      expect(generation.discarded[0]?.requestId).toBe("a");
      expect(generation.discarded[0]?.reason).toContain(reason);
      expect(generation.discarded[0]).not.toHaveProperty("tokenCount");
      expect(generation.pieces.map(({ requestId }) => requestId)).toEqual(["r1~a"]);
      expect(tested.server.stats.abortCount).toBe(1);
    },
  );

  test("an abort with a status under HTTP 200 is that failure, with its tokens counted", async () => {
    await using tested = await start([
      {
        kind: "alter",
        alter: (reply) => ({
          ...reply,
          meta_info: {
            ...(reply["meta_info"] as object),
            finish_reason: {
              type: "abort",
              message: "Request running timeout reached.",
              status_code: 503,
              err_type: "x",
            },
          },
        }),
      },
    ]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject(SAMPLED);
    expect(generation.discarded).toEqual([
      { requestId: "a", reason: "HTTP 503 (Request running timeout reached.)", tokenCount: 4 },
    ]);
  });

  test("through a router the engine sends no abort", async () => {
    await using tested = await start([{ kind: "reset" }], { mode: "router" });
    const { discarded } = await tested.engine.generate(toRequest());
    expect(discarded).toHaveLength(1);
    expect(tested.server.stats.abortCount).toBe(0);
  });

  test("nothing is sent twice after the attempts are used up", async () => {
    await using tested = await start([{ kind: "reset" }, { kind: "reset" }, { kind: "reset" }], {
      retry: { maxAttempts: 2 },
    });
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure).toMatchObject({ code: "engine/unreachable", retryable: true });
    expect(tested.server.stats.generateCount).toBe(2);
  });
});

describe("NaN", () => {
  test("a turn that ended on NaN is dropped and sampled once more", async () => {
    await using tested = await start([{ kind: "nan-happened", afterTokens: 1 }]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject(SAMPLED);
    expect(generation.discarded).toEqual([
      { requestId: "a", reason: "NaN happened", tokenCount: 2 },
    ]);
    expect(generation.pieces).toEqual([
      { requestId: "r1~a", tokenCount: 4, policyVersion: "default", finish: "stop" },
    ]);
  });

  test("a null logprob fails as `engine/nan`, naming its place", async () => {
    await using tested = await start([{ kind: "null-logprob", position: 2 }], ONCE);
    expect(await failureOf(tested.engine.generate(toRequest()))).toEqual({
      code: "engine/nan",
      retryable: false,
      message:
        `Cannot sample request a at ${tested.server.url}: ` +
        "meta_info.output_token_logprobs[2][0], of sampled id 12, is null, " +
        "expected a finite logarithm, at most 0",
    });
    expect(tested.server.stats.generateCount).toBe(1);
  });

  test.each([Number.POSITIVE_INFINITY, Number.NaN])("a logprob of %d does so too", async (bad) => {
    await using tested = await start([], {
      turns: [{ outputIds: [10, 2], logprobs: [-1, bad] }],
      ...ONCE,
    });
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure.code).toBe("engine/nan");
    expect(failure.message).toContain("output_token_logprobs[1][0], of sampled id 2");
  });
});

describe("a reply that cannot be used fails as `engine/bad-reply`, naming the field", () => {
  type Reply = Record<string, unknown> & { meta_info: Record<string, unknown> };
  const altered: [string, (reply: Reply) => unknown, string][] = [
    ["a list", (reply) => [reply, reply], "the reply is a list of 2"],
    ["null", () => null, "the reply is null"],
    ["a number", () => 7, "the reply is 7"],
    ["no meta_info", () => ({ output_ids: [1] }), "meta_info is absent"],
    ["meta_info of another kind", () => ({ meta_info: [] }), "meta_info is []"],
    [
      "no finish_reason",
      (reply) => ({ ...reply, meta_info: { ...reply.meta_info, finish_reason: null } }),
      "meta_info.finish_reason is null",
    ],
    [
      "an unknown finish_reason",
      (reply) => ({
        ...reply,
        meta_info: { ...reply.meta_info, finish_reason: { type: "tired" } },
      }),
      'meta_info.finish_reason.type is "tired"',
    ],
    [
      "no logprobs",
      (reply) => ({
        ...reply,
        meta_info: { ...reply.meta_info, output_token_logprobs: undefined },
      }),
      "meta_info.output_token_logprobs is absent",
    ],
    [
      "logprobs of another kind",
      (reply) => ({ ...reply, meta_info: { ...reply.meta_info, output_token_logprobs: {} } }),
      "meta_info.output_token_logprobs is {}",
    ],
    [
      "an entry of another kind",
      (reply) => ({ ...reply, meta_info: { ...reply.meta_info, output_token_logprobs: [-1] } }),
      "meta_info.output_token_logprobs[0] is -1",
    ],
    [
      "an id that is text",
      (reply) => withEntries(reply, [[-1, "10", null]]),
      'meta_info.output_token_logprobs[0][1] is "10"',
    ],
    [
      "an id that is not a whole number",
      (reply) => withEntries(reply, [[-1, 1.5, null]]),
      "meta_info.output_token_logprobs[0][1] is 1.5",
    ],
    [
      "a negative id",
      (reply) => withEntries(reply, [[-1, -1, null]]),
      "meta_info.output_token_logprobs[0][1] is -1",
    ],
    [
      "an id beyond 32 bits",
      (reply) => withEntries(reply, [[-1, 2 ** 31, null]]),
      "meta_info.output_token_logprobs[0][1] is 2147483648",
    ],
    [
      "fewer logprobs than ids",
      (reply) =>
        withEntries(reply, [
          [-1, 10, null],
          [-1, 2, null],
        ]),
      "meta_info.completion_tokens is 4",
    ],
    [
      "other output_ids",
      (reply) => ({ ...reply, output_ids: [10, 11, 13, 2] }),
      "output_ids[2] is 13, expected 12",
    ],
    [
      "fewer output_ids",
      (reply) => ({ ...reply, output_ids: [10, 11, 12] }),
      "output_ids has 3 ids and meta_info.output_token_logprobs 4",
    ],
    [
      "output_ids of another kind",
      (reply) => ({ ...reply, output_ids: "10" }),
      'output_ids is "10"',
    ],
    [
      "another prompt length",
      (reply) => ({ ...reply, meta_info: { ...reply.meta_info, prompt_tokens: 4 } }),
      "meta_info.prompt_tokens is 4, expected the 3 that were sent",
    ],
    [
      "a prompt length of another kind",
      (reply) => ({ ...reply, meta_info: { ...reply.meta_info, prompt_tokens: "3" } }),
      'meta_info.prompt_tokens is "3"',
    ],
    [
      "a stop id that is not the last id",
      (reply) => ({
        ...reply,
        meta_info: { ...reply.meta_info, finish_reason: { type: "stop", matched: 7 } },
      }),
      "sampling stopped on id 7 but the last id is 2",
    ],
    [
      "version spans with a gap",
      (reply) =>
        withSpans(reply, [
          { version: "1", start: 0, end: 1 },
          { version: "2", start: 2, end: 4 },
        ]),
      "expected a span that begins at token 1",
    ],
    [
      "version spans that end early",
      (reply) => withSpans(reply, [{ version: "1", start: 0, end: 3 }]),
      "meta_info.weight_versions ends at token 3, expected the end, at 4",
    ],
    [
      "nothing sampled",
      (reply) => ({
        output_ids: [],
        meta_info: {
          ...reply.meta_info,
          output_token_logprobs: [],
          output_token_logprobs_length: 0,
          completion_tokens: 0,
          weight_versions: [],
        },
      }),
      "no ids were sampled",
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
    const entries = Array.from({ length: 5 }, () => [-1, 10, null]);
    await using tested = await start(
      [{ kind: "alter", alter: (reply) => withEntries(reply as Reply, entries) }],
      ONCE,
    );
    const failure = await failureOf(tested.engine.generate(toRequest({ maxNewTokens: 4 })));
    expect(failure.code).toBe("engine/bad-reply");
    expect(failure.message).toContain("5 ids were sampled, expected at most 4");
  });

  function withEntries(reply: Reply, entries: unknown): unknown {
    return {
      meta_info: {
        ...reply.meta_info,
        output_token_logprobs: entries,
        output_token_logprobs_length: undefined,
      },
    };
  }

  function withSpans(reply: Reply, spans: unknown): unknown {
    return { ...reply, meta_info: { ...reply.meta_info, weight_versions: spans } };
  }
});

describe("interruptions", () => {
  test("a turn is resumed with its partial ids, less budget, and each piece's own version", async () => {
    await using tested = await start([
      { kind: "abort-after", tokens: 1 },
      { kind: "abort-after", tokens: 2 },
    ]);
    const { server, engine } = tested;
    server.setWeightVersion("7");
    const call = engine.generate(toRequest());
    await server.until(({ requests }) => requests.length === 2);
    server.setWeightVersion("8");
    const generation = await call;
    expect(generation).toEqual({
      ...SAMPLED,
      pieces: [
        { requestId: "a", tokenCount: 1, policyVersion: "7", finish: "abort" },
        { requestId: "r1~a", tokenCount: 2, policyVersion: "8", finish: "abort" },
        { requestId: "r2~a", tokenCount: 1, policyVersion: "8", finish: "stop" },
      ],
      promptTokenCount: 3,
      cachedTokenCount: 0,
      discarded: [],
    });
    expect(server.requests.map(({ inputIds, maxNewTokens }) => [inputIds, maxNewTokens])).toEqual([
      [[1, 2, 3], 16],
      [[1, 2, 3, 10], 15],
      [[1, 2, 3, 10, 11, 12], 13],
    ]);
    expect(backOff(tested.clock)).toEqual([250, 250]);
  });

  test("a request aborted while it held tokens but no prompt keeps them", async () => {
    await using tested = await start([
      {
        kind: "alter",
        alter: () => ({
          output_ids: [10, 11],
          meta_info: {
            finish_reason: { type: "abort", message: "Abort in waiting queue" },
            completion_tokens: 2,
            output_token_logprobs: [
              [-0.0625, 10, null],
              [-0.125, 11, null],
            ],
          },
        }),
      },
    ]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject(SAMPLED);
    expect(generation.pieces.map(({ tokenCount }) => tokenCount)).toEqual([2, 2]);
  });

  test("a turn is resumed up to the limit", async () => {
    const fault: ServerFault = { kind: "abort-after", tokens: 1, message: "weights" };
    await using tested = await start([fault, fault, fault], { resume: { maxResumes: 2 } });
    expect(await failureOf(tested.engine.generate(toRequest()))).toEqual({
      code: "engine/interrupted",
      retryable: true,
      message:
        `Cannot sample request r2~a at ${tested.server.url}: interrupted 3 times (weights), ` +
        "expected at most 2",
    });
  });

  test("an update without interruption gives separate pieces if the engine reports spans", async () => {
    const spans = [
      { version: "7", start: 0, end: 3 },
      { version: "8", start: 3, end: 4 },
    ];
    await using tested = await start([
      {
        kind: "alter",
        alter: (reply) => ({
          ...reply,
          meta_info: { ...(reply["meta_info"] as object), weight_versions: spans },
        }),
      },
    ]);
    const { pieces } = await tested.engine.generate(toRequest());
    expect(pieces).toEqual([
      { requestId: "a", tokenCount: 3, policyVersion: "7", finish: "abort" },
      { requestId: "a", tokenCount: 1, policyVersion: "8", finish: "stop" },
    ]);
  });
});

describe("the end of a turn", () => {
  test("a stop string leaves the ids that completed it", async () => {
    await using tested = await start([], {
      turns: [{ outputIds: [10, 11, 12], matched: "</answer>" }],
    });
    const generation = await tested.engine.generate(
      toRequest({ sampling: { extra: { stop: "</answer>" } } }),
    );
    expect(generation.outputIds).toEqual([10, 11, 12]);
    expect(generation.finish).toEqual({ type: "stop", matched: "</answer>" });
  });

  test("with `ignore_eos` a stop id ends nothing", async () => {
    await using tested = await start([], { turns: [{ outputIds: [2, 2] }] });
    const sampling = { extra: { ignore_eos: true } };
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 2, sampling }));
    expect(generation).toMatchObject({ outputIds: [2, 2], finish: { type: "length" } });
  });

  test("a stop id as the last id of the budget is a stop, regardless of the engine's name for it", async () => {
    await using tested = await start([], { turns: [{ outputIds: [10, 2] }] });
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 2 }));
    expect(tested.server.requests[0]?.finish).toEqual({ type: "length", length: 2 });
    expect(generation.finish).toEqual({ type: "stop", matched: 2 });
    expect(generation.pieces[0]?.finish).toBe("stop");
  });
});

describe("a count of another prompt than was sent", () => {
  /** A gateway that counts wrongly, for any reply that it passes on. */
  const miscounted = (): ServerFault => ({
    kind: "alter",
    alter: (reply) => {
      const meta = reply["meta_info"] as Record<string, unknown>;
      return { ...reply, meta_info: { ...meta, prompt_tokens: 4 } };
    },
  });
  const lost = { requestId: "a", reason: "meta_info.prompt_tokens is 4" };

  test.each([false, true])(
    "costs one reply, and none after it: the next replies list the prompt (streamed: %s)",
    async (isStreamed) => {
      const faults = [miscounted(), miscounted(), miscounted()];
      await using tested = await start(faults, { turns: [SAMPLED, SAMPLED, SAMPLED] });
      const streamed: number[] = [];
      const options = isStreamed
        ? {
            onTokens: ({ tokenIds }: { tokenIds: readonly number[] }) => streamed.push(...tokenIds),
          }
        : {};
      const first = await tested.engine.generate(toRequest(), options);
      expect(first).toMatchObject({ ...SAMPLED, promptTokenCount: 3, discarded: [lost] });
      const second = await tested.engine.generate(toRequest({ requestId: "b" }), options);
      expect(second).toMatchObject({ ...SAMPLED, promptTokenCount: 3, discarded: [] });
      expect(streamed).toEqual(isStreamed ? [...SAMPLED.outputIds, ...SAMPLED.outputIds] : []);
    },
  );

  test("fails if the listed prompt is another", async () => {
    const other = (): ServerFault => ({
      kind: "alter",
      alter: (reply) => ({ ...reply, prompt_token_ids: [1, 9, 3] }),
    });
    await using tested = await start([other()], ONCE);
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure.code).toBe("engine/bad-reply");
    expect(failure.message).toContain("prompt_token_ids[1] is 9, expected 2, as it was sent");
  });
});
