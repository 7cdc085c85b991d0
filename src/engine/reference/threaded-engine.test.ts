import { expect, test } from "vitest";
import { InvariantError } from "../../errors.ts";
import { createDeferred } from "../../testing/deferred.ts";
import type { EngineScenario, EngineUnderTest } from "../../testing/engine-conformance.ts";
import { registerEngineConformance } from "../../testing/engine-conformance.ts";
import { malformTurn } from "../../testing/malformed-turn.ts";
import type { GenerateRequest } from "../engine.ts";
import type { SamplingThread, StartThread, ThreadListeners } from "./thread/start-thread.ts";
import type { ThreadReply, ThreadRequest } from "./thread/thread-message.ts";
import { createThreadedEngine } from "./threaded-engine.ts";

/** A request of one call. */
type KeyedRequest = Exclude<ThreadRequest, { readonly type: "clear-cache" }>;

/** A thread whose replies the test sends. */
interface ScriptedThread {
  readonly start: StartThread;
  readonly requests: readonly KeyedRequest[];
  readonly listeners: () => ThreadListeners;
  readonly isBusy: () => boolean;
  readonly isClosed: () => boolean;
}

function scriptedThread(
  answer: (request: KeyedRequest) => ThreadReply | undefined = () => undefined,
): ScriptedThread {
  const requests: KeyedRequest[] = [];
  let listeners: ThreadListeners | undefined;
  let busy = false;
  let closed = false;
  return {
    requests,
    listeners() {
      if (listeners === undefined) throw new InvariantError("the thread was not started");
      return listeners;
    },
    isBusy: () => busy,
    isClosed: () => closed,
    start(given): SamplingThread {
      listeners = given;
      return {
        post(request) {
          if (request.type === "clear-cache") return;
          requests.push(request);
          const reply = answer(request);
          if (reply !== undefined) queueMicrotask(() => given.onMessage(reply));
        },
        setBusy(isBusy) {
          busy = isBusy;
        },
        close: () => {
          closed = true;
          return Promise.resolve();
        },
      };
    },
  };
}

function engineOver(
  threads: readonly ScriptedThread[],
  limits = { vocabularySize: 200_000, contextLength: 65_536 },
) {
  return createThreadedEngine({
    startThreads: threads.map(({ start }) => start),
    description: { kind: "reference", logprobConvention: "tempered", policyVersion: "v3" },
    limits,
    reload: () => Promise.resolve(),
  });
}

const request: GenerateRequest = {
  promptIds: [5, 6, 7],
  sampling: {},
  maxNewTokens: 16,
  stopTokenIds: [2],
  requestId: "request-0",
  sessionId: "session-0",
};

registerEngineConformance(
  { name: "an engine over threads", start: startScenario, skip: skipped() },
  { test, skip: (name, reason) => test.skip(`${name} (${reason})`) },
);

function skipped() {
  const noServer = "the model runs in this process, without a server";
  return {
    "resumes a turn that the engine interrupted, and keeps the sampled tokens":
      "weights do not change under a running engine",
    "streams each token of a turn that the engine interrupted once, in order":
      "weights do not change under a running engine",
    "continues after the streamed tokens if the connection breaks in mid-stream": noServer,
    "samples a turn again after it refused the reply, and records the refused one":
      "computing the turn again in this process gives the same result",
    "fails as `engine/overloaded`, retryable, if the engine has no room": noServer,
    "fails as `engine/server-error`, retryable, if the engine breaks": noServer,
    "fails as `engine/unauthorized` if the engine wants another key": noServer,
    "fails as `engine/unreachable`, retryable, if no server listens": noServer,
  };
}

function startScenario(scenario: EngineScenario): Promise<EngineUnderTest> {
  const prompts: (readonly number[])[] = [];
  const waits: { count: number; resolve: () => void }[] = [];
  const turns = new Map(
    Object.entries("turns" in scenario ? scenario.turns : {}).map(([id, all]) => [id, [...all]]),
  );
  const thread = scriptedThread((message) => {
    if (message.type !== "generate") return undefined;
    prompts.push([...message.promptIds]);
    for (const { count, resolve } of waits) if (prompts.length >= count) resolve();
    const scripted = turns.get(message.sessionId)?.shift();
    if (scripted === undefined) return undefined;
    const turn = scenario.kind === "malforms" ? malformTurn(scripted, scenario.token) : scripted;
    const streamedCount =
      scenario.kind === "stalls" ? scenario.afterTokens : turn.outputIds.length - 1;
    if (message.streams) {
      for (const [index, id] of turn.outputIds.slice(0, streamedCount).entries()) {
        const news = { type: "sampled", key: message.key, id } as const;
        queueMicrotask(() =>
          thread.listeners().onMessage({ ...news, logprob: turn.logprobs[index]! }),
        );
      }
    }
    if (scenario.kind === "stalls") return undefined;
    const last = turn.outputIds.at(-1);
    const finish =
      last !== undefined && message.stopTokenIds.includes(last)
        ? ({ type: "stop", matched: last } as const)
        : ({ type: "length" } as const);
    return { type: "generated", key: message.key, ...turn, finish, cachedTokenCount: 0 };
  });
  const code = scenario.kind === "fails" ? scenario.code : undefined;
  const engine = engineOver([thread], {
    vocabularySize: code === "engine/bad-request" ? 6 : 200_000,
    contextLength: code === "engine/prompt-too-long" ? 18 : 65_536,
  });
  return Promise.resolve({
    engine,
    seenPrompts: () => prompts,
    untilSeen(count) {
      const { promise, resolve } = createDeferred();
      waits.push({ count, resolve });
      if (prompts.length >= count) resolve();
      return promise;
    },
    [Symbol.asyncDispose]: () => engine.close(),
  });
}

test("a cancelled call is aborted in its thread, and its late reply is dropped", async () => {
  const thread = scriptedThread();
  const engine = engineOver([thread]);
  const controller = new AbortController();
  const call = engine.generate(request, { signal: controller.signal });
  expect(thread.isBusy()).toBe(true);
  controller.abort(new Error("enough"));
  await expect(call).rejects.toThrow("enough");
  expect(thread.isBusy()).toBe(false);
  const [sent, aborted] = thread.requests;
  expect(aborted).toEqual({ type: "abort", key: sent?.key });
  thread.listeners().onMessage({ type: "scored", key: sent?.key ?? -1, logprobs: [] });
});

test("a thread keeps the process alive only while it has calls", async () => {
  const thread = scriptedThread((message) => ({
    type: "generated",
    key: message.key,
    outputIds: [2],
    logprobs: [-1],
    finish: { type: "stop", matched: 2 },
    cachedTokenCount: 0,
  }));
  const engine = engineOver([thread]);
  const call = engine.generate(request);
  expect(thread.isBusy()).toBe(true);
  const generation = await call;
  expect(thread.isBusy()).toBe(false);
  expect(generation.pieces).toEqual([
    { requestId: "request-0", tokenCount: 1, policyVersion: "v3", finish: "stop" },
  ]);
  await engine.close();
  expect(thread.isClosed()).toBe(true);
});

test("a lost thread ends all calls with `engine/unreachable` and its cause, and closes the engine", async () => {
  const threads = [scriptedThread(), scriptedThread()];
  const engine = engineOver(threads);
  const calls = ["a", "b"].map((sessionId) => engine.generate({ ...request, sessionId }));
  const cause = new Error("out of memory");
  threads[0]?.listeners().onLost(cause);
  const lost = { code: "engine/unreachable", cause };
  for (const call of calls) await expect(call).rejects.toMatchObject(lost);
  await expect(engine.generate(request)).rejects.toMatchObject(lost);
  await expect(engine.score({ ids: [1, 2], sampling: {} })).rejects.toMatchObject(lost);
});

test("a thread's failure fails the call", async () => {
  const thread = scriptedThread(({ key }) => ({
    type: "failed",
    key,
    code: "engine/nan",
    message: "no number",
  }));
  await expect(engineOver([thread]).generate(request)).rejects.toMatchObject({
    code: "engine/nan",
    message: "no number",
  });
});

const refused: readonly [string, Partial<GenerateRequest>, string, string][] = [
  ["an empty prompt", { promptIds: [] }, "engine/bad-request", "promptIds is empty"],
  ["a negative id", { promptIds: [1, -1] }, "engine/bad-request", "promptIds[1] is -1"],
  ["an id too large", { promptIds: [100] }, "engine/bad-request", "promptIds[0] is 100"],
  ["half an id", { promptIds: [0.5] }, "engine/bad-request", "promptIds[0] is 0.5"],
  ["no new tokens", { maxNewTokens: 0 }, "engine/bad-request", "maxNewTokens is 0"],
  ["too long a turn", { maxNewTokens: 30 }, "engine/prompt-too-long", "at most 32 together"],
  ["a temperature below 0", { sampling: { temperature: -1 } }, "engine/bad-request", "temperature"],
  ["a top-p of 0", { sampling: { topP: 0 } }, "engine/bad-request", "topP is 0"],
  ["a top-k of 0", { sampling: { topK: 0 } }, "engine/bad-request", "topK is 0"],
  ["a min-p above 1", { sampling: { minP: 1.5 } }, "engine/bad-request", "minP is 1.5"],
  ["a fractional seed", { sampling: { seed: 0.5 } }, "engine/bad-request", "seed is 0.5"],
  [
    "a penalty",
    { sampling: { presencePenalty: 1 } },
    "engine/bad-request",
    "presencePenalty is 1, expected 0",
  ],
  [
    "a parameter it does not know",
    { sampling: { extra: { top_a: 0.1 } } },
    "engine/bad-request",
    "extra has top_a",
  ],
];

for (const [what, change, code, message] of refused) {
  test(`generate() refuses ${what}`, async () => {
    const thread = scriptedThread();
    const engine = engineOver([thread], { vocabularySize: 100, contextLength: 32 });
    const call = engine.generate({ ...request, ...change });
    await expect(call).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
    expect(thread.requests).toEqual([]);
  });
}

test("score() refuses a start outside of the ids, and sends no request for an empty range", async () => {
  const thread = scriptedThread();
  const engine = engineOver([thread]);
  const sampling = {};
  for (const from of [0, 4]) {
    await expect(engine.score({ ids: [1, 2, 3], from, sampling })).rejects.toMatchObject({
      code: "engine/bad-request",
    });
  }
  expect(await engine.score({ ids: [1, 2, 3], from: 3, sampling })).toEqual([]);
  expect(thread.requests).toEqual([]);
});

test("a turn that is cut short returns the thread's tokens so far", async () => {
  const thread = scriptedThread((message) =>
    message.type === "cut-short"
      ? {
          type: "generated",
          key: message.key,
          outputIds: [9],
          logprobs: [-1],
          finish: { type: "length" },
          cachedTokenCount: 0,
        }
      : undefined,
  );
  const engine = engineOver([thread]);
  const cut = new AbortController();
  const call = engine.generate(request, { cutShort: cut.signal });
  cut.abort();
  expect(await call).toMatchObject({ outputIds: [9], finish: { type: "length" } });
  const before = await engine.generate(request, { cutShort: cut.signal });
  expect(before).toMatchObject({ outputIds: [9], finish: { type: "length" } });
});
