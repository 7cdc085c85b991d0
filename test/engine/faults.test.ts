import { describe, expect, test } from "vitest";
import type { ServerFault } from "../../src/testing/index.ts";
import { discardedBy, failureOf, toRequest } from "./request.ts";
import { backOff, SAMPLED } from "./under-test.ts";
import { ONCE, FAULTY_ENGINES, INTERRUPTED_ENGINES } from "./faulty-engines.ts";

// Faults common to all servers. The files next to this one test each server's own faults.

describe.each(FAULTY_ENGINES)("$name", ({ start, policyVersion, promptCounts, abortCount }) => {
  test("an undisturbed turn is returned as sampled", async () => {
    await using tested = await start([]);
    expect(await tested.engine.generate(toRequest())).toEqual({
      ...SAMPLED,
      pieces: [{ requestId: "a", tokenCount: 4, policyVersion, finish: "stop" }],
      ...promptCounts,
      discarded: [],
    });
    expect(backOff(tested.clock)).toEqual([]);
  });

  describe("a request that may have been sampled", () => {
    const broken = "the connection broke before the complete reply arrived";
    test.each<[ServerFault, string]>([
      [{ kind: "reset" }, broken],
      [{ kind: "reset", when: "after-sampling" }, broken],
      [{ kind: "reset", when: "within-reply" }, broken],
      [
        { kind: "status", status: 502, body: "<html>Bad gateway</html>" },
        "HTTP 502 (<html>Bad gateway</html>)",
      ],
      [{ kind: "abort-after", tokens: 2, status: 500, message: "it broke" }, "HTTP 500 (it broke)"],
    ])("%o is recorded and requested again", async (fault, reason) => {
      await using tested = await start([fault]);
      const generation = await tested.engine.generate(toRequest());
      expect(generation).toMatchObject(SAMPLED);
      expect(generation.discarded).toHaveLength(1);
      expect(generation.discarded[0]?.requestId).toBe("a");
      expect(generation.discarded[0]?.reason).toContain(reason);
      expect(generation.discarded[0]).not.toHaveProperty("tokenCount");
      expect(generation.pieces).toEqual([
        { requestId: "r1~a", tokenCount: 4, policyVersion, finish: "stop" },
      ]);
      expect(tested.server.stats.abortCount).toBe(abortCount);
    });

    test("is reported in the failure after the last attempt, and nothing is sent again", async () => {
      await using tested = await start(
        [{ kind: "reset" }, { kind: "status", status: 429 }, { kind: "status", status: 500 }],
        { retry: { maxAttempts: 3 } },
      );
      expect(await discardedBy(tested.engine.generate(toRequest()))).toEqual([
        { requestId: "a", reason: expect.stringContaining(broken) as string },
        { requestId: "r2~a", reason: "HTTP 500" },
      ]);
      expect(tested.server.stats.generateCount).toBe(3);
    });

    test("is absent from a failure without one", async () => {
      await using tested = await start([{ kind: "status", status: 401 }]);
      expect(await discardedBy(tested.engine.generate(toRequest()))).toEqual([]);
    });
  });

  test.each<[ServerFault, string]>([
    [{ kind: "html" }, 'the reply is not JSON: "<html><body>It works!</body></html>"'],
    [{ kind: "truncated-json" }, "the reply is not JSON"],
  ])("%o fails as `engine/bad-reply`", async (fault, message) => {
    await using tested = await start([fault], ONCE);
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure.code).toBe("engine/bad-reply");
    expect(failure.message).toContain(message);
  });

  test("a reply longer than the limit fails as `engine/bad-reply`", async () => {
    await using tested = await start([], { maxReplyBytes: 64, retry: { maxAttempts: 1 } });
    const failure = await failureOf(tested.engine.generate(toRequest()));
    expect(failure.code).toBe("engine/bad-reply");
    expect(failure.message).toContain("longer than 64 bytes");
  });
});

describe.each(INTERRUPTED_ENGINES)("$name, interrupted,", (engine) => {
  const { start, policyVersion, promptCounts, interruption } = engine;

  test("resumes a turn with its partial ids and less budget", async () => {
    await using tested = await start([
      { kind: "abort-after", tokens: 1 },
      { kind: "abort-after", tokens: 2 },
    ]);
    expect(await tested.engine.generate(toRequest())).toEqual({
      ...SAMPLED,
      pieces: [
        { requestId: "a", tokenCount: 1, policyVersion, finish: "abort" },
        { requestId: "r1~a", tokenCount: 2, policyVersion, finish: "abort" },
        { requestId: "r2~a", tokenCount: 1, policyVersion, finish: "stop" },
      ],
      ...promptCounts,
      discarded: [],
    });
    const { requests } = tested.server;
    expect(requests.map(({ inputIds, maxNewTokens }) => [inputIds, maxNewTokens])).toEqual([
      [[1, 2, 3], 16],
      [[1, 2, 3, 10], 15],
      [[1, 2, 3, 10, 11, 12], 13],
    ]);
    expect(backOff(tested.clock)).toEqual([250, 250]);
  });

  test("sends a request again that was aborted in the queue and sampled nothing", async () => {
    await using tested = await start([{ kind: "abort-in-queue" }, { kind: "abort-in-queue" }]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject({ ...SAMPLED, discarded: [], promptTokenCount: 3 });
    expect(generation.pieces).toEqual([
      { requestId: "r2~a", tokenCount: 4, policyVersion, finish: "stop" },
    ]);
    expect(tested.server.requests.map(({ rid }) => rid)).toEqual([
      "0.5-0~a",
      "0.5-1~r1~a",
      "0.5-2~r2~a",
    ]);
    expect(backOff(tested.clock)).toEqual([250, 500]);
  });

  test("resumes a turn up to the limit, and then reports its sampled tokens", async () => {
    const fault: ServerFault = { kind: "abort-after", tokens: 1 };
    await using tested = await start([fault, fault, fault], { resume: { maxResumes: 2 } });
    const call = tested.engine.generate(toRequest());
    const discarded = discardedBy(call);
    expect(await failureOf(call)).toEqual({
      code: "engine/interrupted",
      retryable: true,
      message:
        `Cannot sample request r2~a at ${tested.server.url}: ` +
        `interrupted 3 times (${interruption}), expected at most 2`,
    });
    expect(await discarded).toEqual(
      ["a", "r1~a", "r2~a"].map((requestId) => ({
        requestId,
        reason: "the turn failed later",
        tokenCount: 1,
      })),
    );
  });

  test("ends a turn as `length` if the interruption came at the end of its budget", async () => {
    await using tested = await start([{ kind: "abort-after", tokens: 3 }], {
      turns: [{ outputIds: [10, 11, 12, 13] }],
    });
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 3 }));
    expect(generation).toMatchObject({ outputIds: [10, 11, 12], finish: { type: "length" } });
    expect(generation.pieces.map(({ finish }) => finish)).toEqual(["length"]);
  });

  test("ends a turn as `stop` if its stop id came with the interruption", async () => {
    await using tested = await start([{ kind: "abort-after", tokens: 4 }]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject(SAMPLED);
    expect(generation.pieces.map(({ finish }) => finish)).toEqual(["stop"]);
    expect(tested.server.stats.generateCount).toBe(1);
  });

  test("loses no sampled token by a failure between two pieces", async () => {
    await using tested = await start([
      { kind: "abort-after", tokens: 2 },
      { kind: "reset", when: "after-sampling" },
    ]);
    const generation = await tested.engine.generate(toRequest());
    expect(generation).toMatchObject(SAMPLED);
    expect(generation.pieces.map(({ requestId, tokenCount }) => [requestId, tokenCount])).toEqual([
      ["a", 2],
      ["r2~a", 2],
    ]);
    expect(generation.discarded.map(({ requestId }) => requestId)).toEqual(["r1~a"]);
  });

  test("reports the kept tokens of a turn that fails later", async () => {
    await using tested = await start([
      { kind: "abort-after", tokens: 2 },
      { kind: "status", status: 400 },
    ]);
    expect(await discardedBy(tested.engine.generate(toRequest()))).toEqual([
      { requestId: "a", reason: "the turn failed later", tokenCount: 2 },
    ]);
  });

  test("meets NaN twice and fails as `engine/nan`", async () => {
    const fault: ServerFault = { kind: "nan-happened", afterTokens: 1 };
    await using tested = await start([fault, fault]);
    expect(await failureOf(tested.engine.generate(toRequest()))).toEqual({
      code: "engine/nan",
      retryable: false,
      message:
        `Cannot sample request r1~a at ${tested.server.url}: ` +
        "the engine met NaN twice in one turn, expected finite logits",
    });
    expect(tested.server.stats.generateCount).toBe(2);
  });
});
