import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { manualClock } from "../testing/manual-clock.ts";
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

/** Samples a turn of which the server's replies are these, one after the other. */
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
    /** What is told of before the reply. */
    readonly streamed?: readonly number[];
    /** The turn is cut short while the server works on the request with this number. */
    readonly cutAfter?: number;
  } = {},
): Promise<{ generation: Generation | RolloutError; pieces: readonly PieceRequest[] }> {
  const clock = manualClock({ skipUpToMs: 60_000 });
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
  throw new Error("nobody asked for this");
}

function pieceOf(ids: readonly number[], logprobs = ids.map(() => -1)): SampledPiece {
  return { ids, logprobs, versions: [{ tokenCount: ids.length, policyVersion: "" }] };
}

const finish = { type: "stop", matched: 2 } as const;
const good: PieceReply = { type: "finished", piece: pieceOf([10, 2]), finish };

describe("a piece that no sample may carry", () => {
  const wrong: [string, SampledPiece, string][] = [
    ["an id of another vocabulary", pieceOf([10, 100]), "sampled id 1 is 100"],
    ["half an id", pieceOf([10.5]), "sampled id 0 is 10.5"],
    ["a logprob above 0", pieceOf([10], [0.1]), "the logprob of sampled id 10 is 0.1"],
    ["a logprob far below", pieceOf([10], [-1e308]), "the logprob of sampled id 10 is -1e+308"],
    ["too few logprobs", pieceOf([10, 11], [-1]), "2 ids were sampled with 1 logprobs"],
    ["too many ids", pieceOf([1, 2, 3, 4, 5, 6, 7, 8, 9]), "9 ids were sampled"],
  ];
  test.each(wrong)("finished, of %s, is discarded and asked for anew", async (_, piece, reason) => {
    const { generation, pieces } = await sample([{ type: "finished", piece, finish }, good]);
    expect(generation).toMatchObject({
      outputIds: [10, 2],
      discarded: [{ requestId: "a", reason, tokenCount: piece.ids.length }],
    });
    expect(pieces.map(({ inputIds }) => inputIds)).toEqual([request.promptIds, request.promptIds]);
  });

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

  test("fails the turn the third time, though something came in between", async () => {
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

test("what is sampled behind an interruption is sampled with another seed", async () => {
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

describe("a turn that is held to a form as a whole", () => {
  const form = { constraint: { type: "regex", pattern: "abc" } } as const;
  const reason = "it was interrupted, and constraint (regex) is of the whole turn";
  const interrupted: PieceReply = {
    type: "interrupted",
    piece: pieceOf([9, 8]),
    message: "new weights",
  };

  test("is asked for anew where it was interrupted", async () => {
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

  test("is its beginning where it is cut short before it has begun anew", async () => {
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

  test("is what was sampled anew where it is cut short behind that", async () => {
    const again: PieceReply = { type: "interrupted", piece: pieceOf([7]), message: "" };
    const { generation } = await sample([interrupted, again], {}, { form, cutAfter: 2 });
    expect(generation).toMatchObject({
      outputIds: [7],
      pieces: [{ requestId: "r1~a", tokenCount: 1, policyVersion: "", finish: "abort" }],
      discarded: [{ requestId: "a", reason, tokenCount: 2 }],
    });
  });

  test("is whole where it was interrupted behind its stop id", async () => {
    const whole: PieceReply = { type: "interrupted", piece: pieceOf([9, 2]), message: "" };
    const { generation } = await sample([whole], {}, { form });
    expect(generation).toMatchObject({ outputIds: [9, 2], finish, discarded: [] });
  });

  test("fails where its beginning was told", async () => {
    const told: number[] = [];
    const onTokens: GenerateOptions["onTokens"] = ({ tokenIds }) => void told.push(...tokenIds);
    const { generation, pieces } = await sample([interrupted], {}, { form, onTokens });
    expect(generation).toMatchObject({
      code: "engine/interrupted",
      retryable: true,
      message:
        "Cannot sample on in request a: it was interrupted (new weights) behind tokens that were streamed, " +
        "and constraint (regex) is of the whole turn, expected the turn to be asked for again",
      discarded: [{ requestId: "a", reason: "the turn failed later", tokenCount: 2 }],
    });
    expect([told, pieces.length]).toEqual([[9, 8], 1]);
  });

  test("fails where its stream broke off", async () => {
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
      message: expect.stringContaining("it was interrupted (the stream broke) behind") as string,
      discarded: [{ requestId: "a", tokenCount: 1 }],
    });
    expect(pieces).toHaveLength(1);
  });
});

test("twenty turns at once let the event loop get round in between", async () => {
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
      // All replies come at once.
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
  // Each writes and reads for longer than one round of the loop may be kept; a few may share one.
  expect(seen.written.size).toBeGreaterThan(5);
  expect(seen.read.size).toBeGreaterThan(5);
});

describe("a turn that is cut short", () => {
  /** A server that samples one id for each call of `sample()`, until it is told to stop. */
  function slowServer(canAbort: boolean) {
    const settings = toHttpEngineSettings({ url: "http://server", ...manualClock() });
    const transport = { url: "http://server", send: fails, close: fails };
    const worker: Worker = { url: "http://server", transport, control: transport };
    const workers = createWorkerSet({ workers: [worker], cooldownMs: 0, clock: settings.clock });
    const asked = withResolvers();
    const answer = withResolvers<PieceReply>();
    const aborted: string[] = [];
    const signals = { signal: undefined, closing: new AbortController().signal };
    const protocol: SamplingProtocol = {
      async samplePiece() {
        asked.resolve();
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
    return { asked: asked.promise, answer, aborted, cut, context, timesNotCut };
  }

  test("tells the server, and ends with what it has sampled", async () => {
    const { asked, aborted, cut, context, timesNotCut } = slowServer(true);
    const call = requestTurn(request, context);
    await asked;
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

  test("takes the whole turn of a server that cannot be told, and says so before it comes", async () => {
    const { asked, answer, cut, context, timesNotCut } = slowServer(false);
    const call = requestTurn(request, context);
    await asked;
    expect(timesNotCut()).toBe(0);
    cut.abort();
    await new Promise((resolve) => setImmediate(resolve));
    expect(timesNotCut()).toBe(1);
    answer.resolve(good);
    expect(await call).toMatchObject({ outputIds: [10, 2], finish });
  });

  test("fails by what is thrown by whoever is told that the server cannot be", async () => {
    const { asked, answer, cut, context } = slowServer(false);
    const broken = (): never => fails();
    const call = requestTurn(request, { ...context, onNotCutShort: broken });
    await asked;
    cut.abort();
    await new Promise((resolve) => setImmediate(resolve));
    answer.resolve(good);
    await expect(call).rejects.toThrow("nobody asked for this");
  });

  test("asks for nothing where it was cut short before", async () => {
    const { cut, aborted, context } = slowServer(true);
    cut.abort();
    const generation = await requestTurn(request, context);
    expect(generation).toMatchObject({ outputIds: [], finish: { type: "length" }, pieces: [] });
    expect(aborted).toEqual([]);
  });

  test("asks for nothing where it was cut short as it waited for its turn", async () => {
    const { cut, answer, context } = slowServer(false);
    answer.resolve(good);
    const call = requestTurn(request, context);
    cut.abort();
    expect(await call).toMatchObject({ outputIds: [], finish: { type: "length" }, pieces: [] });
  });

  test("does not wait for another attempt", async () => {
    const { asked, answer, cut, context } = slowServer(false);
    const call = requestTurn(request, context);
    await asked;
    const problem = { code: "engine/overloaded", problem: "HTTP 503", expected: "room" } as const;
    const failure = { ...problem, retry: true, maySample: false };
    answer.resolve({ type: "failed", failure });
    cut.abort();
    expect(await call).toMatchObject({ outputIds: [], finish: { type: "length" } });
  });
});
