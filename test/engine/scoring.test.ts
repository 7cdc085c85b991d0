import { describe, expect, test } from "vitest";
import { decodeRagged } from "../../src/columns/ragged-rows.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import { UsageError } from "../../src/errors.ts";
import type { ServerFault } from "../../src/testing/index.ts";
import {
  createSeededPolicy,
  startSglangTestRouter,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import { failureOf } from "./request.ts";
import { backOff } from "./under-test.ts";
import { ONCE, startFaultySglang, startFaultyVllm } from "./faulty-engines.ts";

const IDS = [5, 6, 7, 8];
const REQUEST = { ids: IDS, from: 2, sampling: {} };

/** The policy's own scores of the ids from `from` on. */
async function policyScores(ids: readonly number[], from: number): Promise<readonly number[]> {
  const scores = await createSeededPolicy().score?.({
    inputIds: ids,
    rid: "",
    routingKey: undefined,
  });
  return scores?.slice(from) ?? [];
}

type Meta = Record<string, unknown> & { input_token_logprobs: unknown[][] };

/** A reply of SGLang's with a changed `meta_info`. */
function alterMeta(change: (meta: Meta) => Partial<Record<string, unknown>>): ServerFault {
  return {
    kind: "alter",
    alter: (reply) => {
      const meta = reply["meta_info"] as Meta;
      return { ...reply, meta_info: { ...meta, ...change(meta) } };
    },
  };
}

/** SGLang's entries with one of them replaced. */
function replaceEntry(index: number, entry: unknown): ServerFault {
  return alterMeta(({ input_token_logprobs: entries }) => ({
    input_token_logprobs: entries.with(index, entry as unknown[]),
  }));
}

describe("sglang scores", () => {
  test("by one request that samples nothing and lets the cache serve the tokens before", async () => {
    await using server = await startSglangTestServer();
    const engine = createSglangEngine({ url: server.url, random: () => 0.5 });
    await engine.score({ ...REQUEST, from: 3 });
    expect(await engine.score({ ...REQUEST, from: 3 })).toEqual(await policyScores(IDS, 3));
    expect(server.requests).toHaveLength(2);
    expect(server.requests[0]).toMatchObject({
      rid: "0.5-0~turnwright-score-0",
      routingKey: "turnwright-score-0",
      inputIds: IDS,
      maxNewTokens: 0,
      samplingParams: { temperature: 1, top_p: 1, top_k: -1, repetition_penalty: 1 },
    });
    await engine.close();
  });

  test("with the most probable ids, which it asks for", async () => {
    await using server = await startSglangTestServer();
    const engine = createSglangEngine({ url: server.url });
    const { logprobs, tops } = await engine.scoreTop({ ...REQUEST, topCount: 2 });
    expect(logprobs).toEqual(await policyScores(IDS, 2));
    // The test server leaves the id 7 out of its own tops, as a real one does with unlikely ids.
    const { counts, ids } = decodeRagged(tops, { rows: 2, hasLogprobs: true });
    expect([...counts]).toEqual([2, 2]);
    expect([...ids]).toEqual([6, 5, 8, 6]);
    await engine.close();
  });

  test("refuses a reply without the most probable ids, and one with too many", async () => {
    for (const [input_top_logprobs, problem] of [
      [undefined, "meta_info.input_top_logprobs is absent"],
      [[null, [[-1, 5, null]]], "meta_info.input_top_logprobs has 2 entries, expected 3"],
      [
        [
          null,
          [[-1, 5, null]],
          [
            [-1, 5, null],
            [-2, 6, null],
            [-3, 7, null],
          ],
        ],
        "has 3 ids",
      ],
      [
        [
          null,
          [[-1, 5, null]],
          [
            [-2, 5, null],
            [-1, 6, null],
          ],
        ],
        "a higher logprob after a lower",
      ],
    ] as const) {
      await using tested = await startFaultySglang(
        [alterMeta(() => ({ input_top_logprobs }))],
        ONCE,
      );
      const error = await failureOf(tested.engine.scoreTop({ ...REQUEST, topCount: 2 }));
      expect(error).toMatchObject({ code: "engine/bad-reply" });
      expect(error.message).toContain(problem);
    }
  });

  test("also through a router", async () => {
    await using server = await startSglangTestServer();
    await using router = await startSglangTestRouter({ workers: [server.url] });
    const engine = createSglangEngine({ url: router.url });
    expect(await engine.score(REQUEST)).toEqual(await policyScores(IDS, 2));
    await engine.close();
  });

  test("on all of its workers, and on those that are up", async () => {
    await using one = await startSglangTestServer();
    await using other = await startSglangTestServer();
    const retry = { baseDelayMs: 1 };
    const engine = createSglangEngine({ url: [one.url, other.url], retry, random: () => 0.5 });
    const expected = await policyScores(IDS, 2);
    const calls = Array.from({ length: 32 }, () => engine.score(REQUEST));
    expect(await Promise.all(calls)).toEqual(calls.map(() => expected));
    expect(one.stats.generateCount).toBeGreaterThan(0);
    expect(other.stats.generateCount).toBeGreaterThan(0);
    await other.close();
    const more = Array.from({ length: 8 }, () => engine.score(REQUEST));
    expect(await Promise.all(more)).toEqual(more.map(() => expected));
    await engine.close();
  });

  test("takes an id that the server writes as 0, as it writes the vocabulary's last", async () => {
    await using tested = await startFaultySglang([replaceEntry(2, [-0.5, 0, null])]);
    expect(await tested.engine.score(REQUEST)).toEqual([-1, -0.5]);
  });

  const field = "meta_info.input_token_logprobs";
  const cases: [string, ServerFault, string, string][] = [
    [
      "no list",
      alterMeta(() => ({ input_token_logprobs: undefined })),
      "engine/bad-reply",
      `${field} is absent, expected a list`,
    ],
    [
      "an entry too few",
      alterMeta((meta) => ({ input_token_logprobs: meta.input_token_logprobs.slice(1) })),
      "engine/bad-reply",
      `${field} has 2 entries, expected 3, one for each id from 1 on`,
    ],
    [
      "another id",
      replaceEntry(1, [-1, 9, null]),
      "engine/bad-reply",
      `${field}[1][1] is 9, expected 7, as it was sent`,
    ],
    [
      "an entry that is none",
      replaceEntry(1, null),
      "engine/bad-reply",
      `${field}[1] is null, expected [logprob, id, text]`,
    ],
    [
      "NaN, which is written as null",
      replaceEntry(2, [null, 8, null]),
      "engine/nan",
      `${field}[2][0], of sampled id 8, is null, expected a finite logarithm, at most 0`,
    ],
    [
      "another prompt's length",
      alterMeta(() => ({ prompt_tokens: 3 })),
      "engine/bad-reply",
      "meta_info.prompt_tokens is 3, expected the 4 that were sent",
    ],
  ];
  test.each(cases)("refuses %s", async (_name, fault, code, message) => {
    await using tested = await startFaultySglang([fault], ONCE);
    const failure = await failureOf(tested.engine.score(REQUEST));
    expect(failure).toMatchObject({ code, retryable: false });
    expect(failure.message).toContain("Cannot score request turnwright-score-0 at http");
    expect(failure.message).toContain(message);
  });
});

describe.each(["generate", "completions"] as const)("vllm, %s, scores", (api) => {
  test("with a turn of one token beside the prompt", async () => {
    await using server = await startVllmTestServer({ apis: [api], reportsCachedTokens: true });
    const engine = createVllmEngine({ url: server.url, random: () => 0.5 });
    expect(await engine.score(REQUEST)).toEqual(await policyScores(IDS, 2));
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({
      routingKey: "turnwright-score-0",
      inputIds: IDS,
      maxNewTokens: 1,
      samplingParams: { temperature: 0, prompt_logprobs: 0 },
    });
    await engine.close();
  });

  test("with the most probable ids, without the id itself where it is not among them", async () => {
    await using server = await startVllmTestServer({ apis: [api] });
    const engine = createVllmEngine({ url: server.url });
    const { logprobs, tops } = await engine.scoreTop({ ...REQUEST, topCount: 2 });
    expect(logprobs).toEqual(await policyScores(IDS, 2));
    const { counts, ids } = decodeRagged(tops, { rows: 2, hasLogprobs: true });
    expect([...counts]).toEqual([2, 2]);
    expect([...ids]).toEqual([6, 5, 8, 6]);
    expect(server.requests[0]).toMatchObject({ samplingParams: { prompt_logprobs: 2 } });
    await engine.close();
  });

  /** A reply with a changed list of scores. */
  const alterList = (change: (list: unknown[]) => unknown): ServerFault => ({
    kind: "alter",
    alter: (reply) => {
      const choices = reply["choices"] as Record<string, unknown>[];
      const [choice = {}] = choices;
      const parent = api === "generate" ? reply : choice;
      const changed = {
        ...parent,
        prompt_logprobs: change(parent["prompt_logprobs"] as unknown[]),
      };
      return api === "generate" ? changed : { ...reply, choices: [changed] };
    },
  });
  const field = api === "generate" ? "prompt_logprobs" : "choices[0].prompt_logprobs";
  const cases: [string, ServerFault, string, string][] = [
    ["no list", alterList(() => null), "engine/bad-reply", `${field} is null, expected a list`],
    [
      "an entry too few",
      alterList((list) => list.slice(1)),
      "engine/bad-reply",
      `${field} has 3 entries, expected 4, one for each id of the prompt`,
    ],
    [
      "an entry without the id",
      alterList((list) => list.with(2, { 9: { logprob: -1, rank: 1, decoded_token: "" } })),
      "engine/bad-reply",
      "expected an object with the id 7",
    ],
    [
      "what the server writes for minus infinity",
      alterList((list) => list.with(3, { 8: { logprob: -9_999, rank: 1, decoded_token: "" } })),
      "engine/nan",
      `${field}[3].8.logprob, of sampled id 8, is -9999, expected a logarithm above -9999`,
    ],
  ];
  test.each(cases)("refuses %s", async (_name, fault, code, message) => {
    await using tested = await startFaultyVllm(api, [fault], ONCE);
    const failure = await failureOf(tested.engine.score(REQUEST));
    expect(failure).toMatchObject({ code, retryable: false });
    expect(failure.message).toContain(message);
  });

  test("fails as `engine/nan` if the server cannot write its reply", async () => {
    const policy = { ...createSeededPolicy(), score: () => [0, -1, Number.NaN, -1] };
    await using tested = await startFaultyVllm(api, [], { server: { policy } });
    const failure = await failureOf(tested.engine.score(REQUEST));
    expect(failure).toMatchObject({ code: "engine/nan", retryable: false });
  });

  test("names the served models if the model is not one of them", async () => {
    await using tested = await startFaultyVllm(api, [], { model: "mine" });
    const failure = await failureOf(tested.engine.score(REQUEST));
    expect(failure.code).toBe("engine/bad-request");
    expect(failure.message).toContain('model to be one that is served: "test-model"');
  });
});

describe("a temperature that the server leaves out of its scores", () => {
  const tempered = { ...REQUEST, sampling: { temperature: 0.7 } };

  test("is refused if reported logprobs have it, before any request", async () => {
    await using server = await startSglangTestServer();
    const engine = createSglangEngine({ url: server.url });
    await expect(engine.score(tempered)).rejects.toThrow(
      new UsageError(
        "Cannot score at temperature 0.7 with sglang: its scores are of the raw logits at any " +
          "temperature, and the logprobs of what it samples are tempered; expected temperature " +
          "1 or 0, a server whose logprobs are raw, or the reference engine",
      ),
    );
    expect(server.requests).toEqual([]);
    await engine.close();
  });

  test("does not matter if reported logprobs are raw", async () => {
    await using server = await startSglangTestServer();
    const engine = createSglangEngine({ url: server.url, logprobConvention: "raw" });
    expect(await engine.score(tempered)).toEqual(await policyScores(IDS, 2));
    await engine.close();
  });

  test("is refused or not by what vllm's logprobs are found to be", async () => {
    await using raw = await startVllmTestServer();
    const rawEngine = createVllmEngine({ url: raw.url });
    expect(await rawEngine.score(tempered)).toEqual(await policyScores(IDS, 2));
    const askedCount = raw.stats.generateCount;
    await rawEngine.score(tempered);
    expect(raw.stats.generateCount).toBe(askedCount + 1);
    await rawEngine.close();

    await using processed = await startVllmTestServer({ logprobsMode: "processed_logprobs" });
    const engine = createVllmEngine({ url: processed.url });
    await expect(engine.score(tempered)).rejects.toThrow(
      /^Cannot score at temperature 0.7 with vllm: .* are processed; expected/,
    );
    expect(await engine.score(REQUEST)).toEqual(await policyScores(IDS, 2));
    await engine.close();
  });

  test("is refused if vllm's convention is only assumed", async () => {
    const policy = { ...createSeededPolicy(), begin: () => [{ id: 2, logprob: 0 }] };
    await using server = await startVllmTestServer({ policy });
    const engine = createVllmEngine({ url: server.url });
    await expect(engine.score(tempered)).rejects.toThrow(
      "the logprobs of what it samples are of a convention that could not be determined",
    );
    await engine.close();
  });
});

describe("a request for scores that fails", () => {
  test("is aborted if it may be running, and sent again under a new name", async () => {
    await using tested = await startFaultySglang([
      { kind: "reset", when: "after-sampling" },
      { kind: "status", status: 503, headers: { "retry-after": "2" } },
    ]);
    expect(await tested.engine.score(REQUEST)).toEqual([-1, -1]);
    expect(tested.server.stats.abortCount).toBe(1);
    expect(tested.server.requests.map(({ rid }) => rid)).toEqual([
      "0.5-0~turnwright-score-0",
      "0.5-1~turnwright-score-0",
      "0.5-2~turnwright-score-0",
    ]);
    expect(backOff(tested.clock)).toEqual([187.5, 2_000]);
  });

  test("fails after the limit of attempts and interruptions", async () => {
    const status = { kind: "status", status: 500 } as const;
    await using failing = await startFaultySglang([status, status], { retry: { maxAttempts: 2 } });
    const failure = await failureOf(failing.engine.score(REQUEST));
    expect(failure).toMatchObject({ code: "engine/server-error", retryable: true });
    expect(failure.message).toContain("(attempt 2): HTTP 500");

    const abort = { kind: "abort-in-queue" } as const;
    await using interrupted = await startFaultySglang([abort, abort], {
      resume: { maxResumes: 1 },
    });
    expect(await failureOf(interrupted.engine.score(REQUEST))).toMatchObject({
      code: "engine/interrupted",
      retryable: true,
    });
  });

  test("ends at the call's deadline", async () => {
    await using tested = await startFaultySglang([{ kind: "hang" }], {
      timeouts: { controlMs: 70_000, requestMs: 100_000, turnMs: 90_000 },
    });
    const call = failureOf(tested.engine.score(REQUEST));
    await tested.server.until(({ requests }) => requests.length === 1);
    await tested.clock.advance(90_000);
    const failure = await call;
    expect(failure).toMatchObject({ code: "engine/timeout", retryable: false });
    expect(failure.message).toContain("the call took longer than 90000 ms");
  });
});
