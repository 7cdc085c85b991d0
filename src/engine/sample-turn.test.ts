import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import type { GenerateOptions, GenerateRequest, Generation } from "./engine.ts";
import { toHttpEngineSettings } from "./http/http-engine-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";
import type { PieceReply, SampledPiece } from "./http/piece-reply.ts";
import type { PieceRequest } from "./http/piece-request.ts";
import { requestTurn } from "./sample-turn.ts";
import type { SamplingProtocol } from "./http/sampling-protocol.ts";
import type { Worker } from "./http/worker-set.ts";
import { createWorkerSet } from "./http/worker-set.ts";

const request: GenerateRequest = {
  promptIds: [5, 6, 7],
  sampling: {},
  maxNewTokens: 8,
  stopTokenIds: [2],
  vocabularySize: 100,
  requestId: "a",
  sessionId: "s",
};

const toWireId = (requestId: string): string => `1~${requestId}`;

/** Samples a turn with these replies of the server, in order. */
async function sample(
  replies: readonly PieceReply[],
  sampling: GenerateRequest["sampling"] = {},
  {
    form = {},
    onTokens,
    streamed = [],
    cutAfter,
  }: {
    readonly form?: Pick<GenerateRequest, "constraint">;
    readonly onTokens?: GenerateOptions["onTokens"];
    /** Tokens that are streamed before the reply. */
    readonly streamed?: readonly number[];
    /** The number of the request during which the turn is cut short. */
    readonly cutAfter?: number;
  } = {},
): Promise<{ generation: Generation | RolloutError; pieces: readonly PieceRequest[] }> {
  const clock = createManualClock({ skipUpToMs: 60_000 });
  const settings = toHttpEngineSettings({ url: "http://server", ...clock, random: () => 0.5 });
  const transport = { url: "http://server", send: fails, close: fails };
  const worker: Worker = { url: "http://server", transport, control: transport };
  const workers = createWorkerSet({ workers: [worker], cooldownMs: 0, clock: settings.clock });
  const pieces: PieceRequest[] = [];
  const left = [...replies];
  const cut = new AbortController();
  const generation = await requestTurn(
    { ...request, sampling, ...form },
    {
      ...(onTokens && { onTokens }),
      workers,
      settings,
      toWireId,
      signal: undefined,
      cutShort: cut.signal,
      closing: new AbortController().signal,
      protocol: {
        async samplePiece(piece, { stream }) {
          pieces.push(piece);
          if (pieces.length === cutAfter) cut.abort();
          stream?.append(
            streamed,
            streamed.map(() => -1),
          );
          return left.shift() ?? fails();
        },
        abortRequest: async () => true,
      },
    },
  ).catch((error: unknown) => {
    if (error instanceof RolloutError) return error;
    throw error;
  });
  return { generation, pieces };
}

function fails(): never {
  throw new Error("unexpected call");
}

function pieceOf(ids: readonly number[], logprobs = ids.map(() => -1)): SampledPiece {
  return { ids, logprobs, versions: [{ tokenCount: ids.length, policyVersion: "" }] };
}

const finish = { type: "stop", matched: 2 } as const;
const good: PieceReply = { type: "finished", piece: pieceOf([10, 2]), finish };

describe("an invalid piece", () => {
  const wrong: [string, SampledPiece, string][] = [
    ["an id of another vocabulary", pieceOf([10, 100]), "sampled id 1 is 100"],
    ["half an id", pieceOf([10.5]), "sampled id 0 is 10.5"],
    ["a logprob above 0", pieceOf([10], [0.1]), "the logprob of sampled id 10 is 0.1"],
    ["a logprob far below", pieceOf([10], [-1e308]), "the logprob of sampled id 10 is -1e+308"],
    ["too few logprobs", pieceOf([10, 11], [-1]), "2 ids were sampled with 1 logprobs"],
    ["too many ids", pieceOf([1, 2, 3, 4, 5, 6, 7, 8, 9]), "9 ids were sampled"],
  ];
  test.each(wrong)(
    "finished, of %s, is discarded and requested again",
    async (_, piece, reason) => {
      const { generation, pieces } = await sample([{ type: "finished", piece, finish }, good]);
      expect(generation).toMatchObject({
        outputIds: [10, 2],
        discarded: [{ requestId: "a", reason, tokenCount: piece.ids.length }],
      });
      expect(pieces.map(({ inputIds }) => inputIds)).toEqual([
        request.promptIds,
        request.promptIds,
      ]);
    },
  );

  test.each(wrong)("interrupted, of %s, is not resumed", async (_, piece, reason) => {
    const interrupted: PieceReply = { type: "interrupted", piece, message: "" };
    const { generation, pieces } = await sample([
      { type: "interrupted", piece: pieceOf([9]), message: "" },
      interrupted,
      good,
    ]);
    expect(generation).toMatchObject({
      outputIds: [9, 10, 2],
      discarded: [{ requestId: "r1~a", reason, tokenCount: piece.ids.length }],
    });
    expect(pieces.map(({ inputIds }) => inputIds)).toEqual([
      [5, 6, 7],
      [5, 6, 7, 9],
      [5, 6, 7, 9],
    ]);
  });

  test("fails the turn the third time, even after progress in between", async () => {
    const bad: PieceReply = { type: "finished", piece: pieceOf([100]), finish };
    const kept: PieceReply = { type: "interrupted", piece: pieceOf([9]), message: "" };
    const { generation, pieces } = await sample([bad, kept, bad, bad]);
    expect(generation).toMatchObject({
      code: "engine/bad-reply",
      retryable: false,
      message:
        "Cannot sample request r3~a at http://server (attempt 2): " +
        "sampled id 0 is 100, expected an id, 0 to 99",
    });
    expect((generation as RolloutError).discarded).toHaveLength(4);
    expect(pieces).toHaveLength(4);
  });
});

test("a continued turn is sampled with another seed", async () => {
  const { pieces } = await sample(
    [
      { type: "interrupted", piece: pieceOf([]), message: "" },
      { type: "interrupted", piece: pieceOf([9, 8]), message: "" },
      good,
    ],
    { seed: 5 },
  );
  expect(pieces.map(({ turn }) => turn.sampling.seed)).toEqual([
    5,
    5,
    (5 + 2 * 1_327_217_885) % 2 ** 31,
  ]);
});

describe("a turn with a rule on its complete output", () => {
  const form = { constraint: { type: "regex", pattern: "abc" } } as const;
  const reason = "it was interrupted, and constraint (regex) applies to the complete turn";
  const interrupted: PieceReply = {
    type: "interrupted",
    piece: pieceOf([9, 8]),
    message: "new weights",
  };

  test("is sampled again if it was interrupted", async () => {
    const { generation, pieces } = await sample([interrupted, good], { seed: 5 }, { form });
    expect(generation).toEqual({
      outputIds: [10, 2],
      logprobs: [-1, -1],
      finish,
      pieces: [{ requestId: "r1~a", tokenCount: 2, policyVersion: "", finish: "stop" }],
      discarded: [{ requestId: "a", reason, tokenCount: 2 }],
    });
    expect(
      pieces.map(({ inputIds, maxNewTokens, turn }) => [inputIds, maxNewTokens, turn.sampling]),
    ).toEqual([
      [[5, 6, 7], 8, { seed: 5 }],
      [[5, 6, 7], 8, { seed: 5 }],
    ]);
  });

  test("keeps its first part if it is cut short before it is sampled again", async () => {
    const nothing: PieceReply = { type: "interrupted", piece: pieceOf([]), message: "" };
    const replies = [interrupted, nothing, nothing];
    const { generation, pieces } = await sample(replies, {}, { form, cutAfter: 3 });
    expect(generation).toEqual({
      outputIds: [9, 8],
      logprobs: [-1, -1],
      finish: { type: "length" },
      pieces: [{ requestId: "a", tokenCount: 2, policyVersion: "", finish: "abort" }],
      discarded: [],
    });
    expect(pieces.map(({ inputIds }) => inputIds)).toEqual([
      [5, 6, 7],
      [5, 6, 7],
      [5, 6, 7],
    ]);
  });

  test("is the second part if it is cut short after it was sampled again", async () => {
    const again: PieceReply = { type: "interrupted", piece: pieceOf([7]), message: "" };
    const { generation } = await sample([interrupted, again], {}, { form, cutAfter: 2 });
    expect(generation).toMatchObject({
      outputIds: [7],
      pieces: [{ requestId: "r1~a", tokenCount: 1, policyVersion: "", finish: "abort" }],
      discarded: [{ requestId: "a", reason, tokenCount: 2 }],
    });
  });

  test("is complete if it was interrupted after its stop id", async () => {
    const complete: PieceReply = { type: "interrupted", piece: pieceOf([9, 2]), message: "" };
    const { generation } = await sample([complete], {}, { form });
    expect(generation).toMatchObject({ outputIds: [9, 2], finish, discarded: [] });
  });

  test("fails if its first ids were streamed", async () => {
    const streamedIds: number[] = [];
    const onTokens: GenerateOptions["onTokens"] = ({ tokenIds }) =>
      void streamedIds.push(...tokenIds);
    const { generation, pieces } = await sample([interrupted], {}, { form, onTokens });
    expect(generation).toMatchObject({
      code: "engine/interrupted",
      retryable: true,
      message:
        "Cannot continue request a: it was interrupted (new weights) after tokens were streamed, " +
        "and constraint (regex) applies to the complete turn, expected the turn to be requested again",
      discarded: [{ requestId: "a", reason: "the turn failed later", tokenCount: 2 }],
    });
    expect([streamedIds, pieces.length]).toEqual([[9, 8], 1]);
  });

  test("fails if its stream broke off", async () => {
    const problem = { code: "engine/unreachable", problem: "the stream broke" } as const;
    const failure = { ...problem, expected: "an answer", retry: true, maySample: false };
    const { generation, pieces } = await sample(
      [{ type: "failed", failure }],
      {},
      { form, onTokens: () => {}, streamed: [9] },
    );
    expect(generation).toMatchObject({
      code: "engine/interrupted",
      retryable: true,
      message: expect.stringContaining("it was interrupted (the stream broke) after") as string,
      discarded: [{ requestId: "a", tokenCount: 1 }],
    });
    expect(pieces).toHaveLength(1);
  });
});

test("twenty turns at once let other tasks of the event loop run", async () => {
  const burn = (): void => {
    const end = performance.now() + 6;
    while (performance.now() < end);
  };
  let roundCount = 0;
  const rounds = setInterval(() => roundCount++, 0);
  const seen = { written: new Set<number>(), read: new Set<number>() };
  const answered = withResolvers();
  const settings = toHttpEngineSettings({ url: "http://server" });
  let sentCount = 0;
  const transport: HttpTransport = {
    url: "http://server",
    close: fails,
    async send() {
      // All replies arrive at once.
      if (++sentCount === 20) answered.resolve();
      await answered.promise;
      return { type: "reply", status: 200, headers: {}, text: "" };
    },
  };
  const worker: Worker = { url: "http://server", transport, control: transport };
  const workers = createWorkerSet({ workers: [worker], cooldownMs: 0, clock: settings.clock });
  const protocol: SamplingProtocol = {
    async samplePiece(_piece, { post }) {
      burn();
      seen.written.add(roundCount);
      await post({ path: "/", headers: {}, body: "" });
      burn();
      seen.read.add(roundCount);
      return good;
    },
    abortRequest: async () => true,
  };
  const closing = new AbortController().signal;
  await Promise.all(
    Array.from({ length: 20 }, () =>
      requestTurn(request, { workers, settings, toWireId, signal: undefined, closing, protocol }),
    ),
  );
  clearInterval(rounds);
  // Each turn takes longer than one iteration may be blocked. A few may share one.
  expect(seen.written.size).toBeGreaterThan(5);
  expect(seen.read.size).toBeGreaterThan(5);
});

describe("a turn that is cut short", () => {
  /** A server that samples one id for each call of `sample()`, until it is aborted. */
  function slowServer(canAbort: boolean) {
    const settings = toHttpEngineSettings({ url: "http://server", ...createManualClock() });
    const transport = { url: "http://server", send: fails, close: fails };
    const worker: Worker = { url: "http://server", transport, control: transport };
    const workers = createWorkerSet({ workers: [worker], cooldownMs: 0, clock: settings.clock });
    const requested = withResolvers();
    const answer = withResolvers<PieceReply>();
    const aborted: string[] = [];
    const signals = { signal: undefined, closing: new AbortController().signal };
    const protocol: SamplingProtocol = {
      async samplePiece() {
        requested.resolve();
        return await answer.promise;
      },
      async abortRequest(_worker, requestId) {
        aborted.push(requestId);
        const piece = pieceOf([10, 11]);
        if (canAbort) answer.resolve({ type: "interrupted", piece, message: "" });
        return canAbort;
      },
    };
    const cut = new AbortController();
    let notCutCount = 0;
    const onNotCutShort = (): void => void (notCutCount += 1);
    const context = {
      workers,
      settings,
      protocol,
      toWireId,
      ...signals,
      cutShort: cut.signal,
      onNotCutShort,
    };
    const timesNotCut = (): number => notCutCount;
    return { requested: requested.promise, answer, aborted, cut, context, timesNotCut };
  }

  test("makes the server stop, and ends with the sampled ids", async () => {
    const { requested, aborted, cut, context, timesNotCut } = slowServer(true);
    const call = requestTurn(request, context);
    await requested;
    cut.abort();
    expect(await call).toEqual({
      outputIds: [10, 11],
      logprobs: [-1, -1],
      finish: { type: "length" },
      pieces: [{ requestId: "a", tokenCount: 2, policyVersion: "", finish: "abort" }],
      discarded: [],
    });
    expect(aborted).toEqual(["1~a"]);
    expect(timesNotCut()).toBe(0);
  });

  test("waits for the complete turn if the server cannot stop, and reports that before", async () => {
    const { requested, answer, cut, context, timesNotCut } = slowServer(false);
    const call = requestTurn(request, context);
    await requested;
    expect(timesNotCut()).toBe(0);
    cut.abort();
    await new Promise((resolve) => setImmediate(resolve));
    expect(timesNotCut()).toBe(1);
    answer.resolve(good);
    expect(await call).toMatchObject({ outputIds: [10, 2], finish });
  });

  test("fails with an error that `onNotCutShort` throws", async () => {
    const { requested, answer, cut, context } = slowServer(false);
    const broken = (): never => fails();
    const call = requestTurn(request, { ...context, onNotCutShort: broken });
    await requested;
    cut.abort();
    await new Promise((resolve) => setImmediate(resolve));
    answer.resolve(good);
    await expect(call).rejects.toThrow("unexpected call");
  });

  test("sends no request if it was cut short before", async () => {
    const { cut, aborted, context } = slowServer(true);
    cut.abort();
    const generation = await requestTurn(request, context);
    expect(generation).toMatchObject({ outputIds: [], finish: { type: "length" }, pieces: [] });
    expect(aborted).toEqual([]);
  });

  test("sends no request if it was cut short while it waited to run", async () => {
    const { cut, answer, context } = slowServer(false);
    answer.resolve(good);
    const call = requestTurn(request, context);
    cut.abort();
    expect(await call).toMatchObject({ outputIds: [], finish: { type: "length" }, pieces: [] });
  });

  test("does not wait for another attempt", async () => {
    const { requested, answer, cut, context } = slowServer(false);
    const call = requestTurn(request, context);
    await requested;
    const problem = { code: "engine/overloaded", problem: "HTTP 503", expected: "room" } as const;
    const failure = { ...problem, retry: true, maySample: false };
    answer.resolve({ type: "failed", failure });
    cut.abort();
    expect(await call).toMatchObject({ outputIds: [], finish: { type: "length" } });
  });
});
