import assert from "node:assert/strict";
import type { ColumnParts } from "../columns/column-part.ts";
import { isOfAllTokens, namesOf, type ColumnSpecs } from "../columns/column-specs.ts";
import { checkGeneration } from "../engine/check-sampled.ts";
import type { Engine, GenerateRequest, StreamedTokens } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { MalformedToken } from "./malformed-turn.ts";
import { IMPOSSIBLE_LOGPROBS, foreignIds } from "./malformed-turn.ts";

/** One turn that the engine under test must sample. `logprobs[i]` is that of `outputIds[i]`. */
export interface ConformanceTurn {
  readonly outputIds: readonly number[];
  readonly logprobs: readonly number[];
}

/** The behaviour that the server of the engine under test must show. */
export type EngineScenario =
  /** Samples the turns of each session, one per call, in order. */
  | { readonly kind: "plays"; readonly turns: Readonly<Record<string, readonly ConformanceTurn[]>> }
  /**
   * Samples the turn, but interrupts it once after `afterTokens` tokens, as a weight update does.
   */
  | {
      readonly kind: "interrupts";
      readonly turns: Readonly<Record<string, readonly ConformanceTurn[]>>;
      readonly afterTokens: number;
    }
  /**
   * Samples the turn, but reports an invalid token at index 1 in the first `replyCount` replies.
   * When asked to score, reports an invalid second score.
   */
  | {
      readonly kind: "malforms";
      readonly turns: Readonly<Record<string, readonly ConformanceTurn[]>>;
      readonly token: MalformedToken;
      readonly replyCount: number;
    }
  /** Samples `afterTokens` tokens, and then waits until the request is aborted. */
  | {
      readonly kind: "stalls";
      readonly turns: Readonly<Record<string, readonly ConformanceTurn[]>>;
      readonly afterTokens: number;
    }
  /** Breaks the connection of the first request after `afterTokens` tokens were streamed. */
  | {
      readonly kind: "breaks";
      readonly turns: Readonly<Record<string, readonly ConformanceTurn[]>>;
      readonly afterTokens: number;
    }
  /** Answers every call with a failure of this kind. */
  | {
      readonly kind: "fails";
      readonly code:
        | "engine/overloaded"
        | "engine/server-error"
        | "engine/unauthorized"
        | "engine/prompt-too-long"
        | "engine/bad-request";
    }
  /** Accepts calls, but never answers them. */
  | { readonly kind: "hangs" }
  /** No server is at the address. */
  | { readonly kind: "unreachable" };

/** A running engine, with the facts that the suite observes. */
export interface EngineUnderTest extends AsyncDisposable {
  readonly engine: Engine;
  /** The prompt of each request that reached the sampler, in order of arrival. */
  readonly seenPrompts: () => readonly (readonly number[])[];
  /** Resolves when `count` calls have reached the sampler. */
  readonly untilSeen: (count: number) => Promise<void>;
}

/** The function that starts engines for the suite, and the cases to skip. */
export interface EngineHarness {
  /** The engine's name in the names of the tests. */
  readonly name: string;
  /**
   * Starts an engine for one case. Retries should wait a few milliseconds at most. Disposing of the result stops all
   * that the function started.
   */
  readonly start: (scenario: EngineScenario) => Promise<EngineUnderTest>;
  /** The side columns that the engine returns. Default: none, and requests for them must fail. */
  readonly columns?: ColumnSpecs;
  /** Cases that do not apply, with the reason. */
  readonly skip?: Partial<Readonly<Record<EngineCase, string>>>;
}

/** The functions of a test runner that the suite needs. */
export interface ConformanceTestApi {
  readonly test: (name: string, run: () => Promise<void>) => void;
  /** Registers a skipped case with its reason. The reason must be visible in the test report. */
  readonly skip: (name: string, reason: string) => void;
}

/** The name of a case. */
export type EngineCase = keyof typeof CASES;

/**
 * Registers the tests that every `Engine` must pass.
 *
 * ```ts
 * import { test } from "vitest";
 * registerEngineConformance(harness, {
 *   test,
 *   skip: (name, reason) => test.skip(`${name} (${reason})`),
 * });
 * ```
 */
export function registerEngineConformance(harness: EngineHarness, api: ConformanceTestApi): void {
  for (const [name, run] of Object.entries(CASES)) {
    const title = `${harness.name} ${name}`;
    const reason = harness.skip?.[name as EngineCase];
    if (reason === undefined) api.test(title, () => run(harness));
    else api.skip(title, reason);
  }
}

const STOP_ID = 2;

function toRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptIds: [5, 6, 7],
    sampling: {},
    maxNewTokens: 16,
    stopTokenIds: [STOP_ID],
    requestId: "request-0",
    sessionId: "session-0",
    ...changes,
  };
}

const TURN: ConformanceTurn = {
  outputIds: [10, 11, 11, 12, STOP_ID],
  logprobs: [-0.5, -0.0625, -3.25, 0, -0.1],
};
const PLAYS_TURN: EngineScenario = { kind: "plays", turns: { "session-0": [TURN] } };
const MALFORMS = { kind: "malforms", turns: { "session-0": [TURN] } } as const;

const SOME_COLUMNS: ColumnSpecs = {
  routedExperts: { layerCount: 2, perToken: 2, expertCount: 8 },
};

/** The vocabulary of the tests. All ids of the turns are below it. */
const VOCABULARY_SIZE = 1_000;
const IN_VOCABULARY = toRequest({ vocabularySize: VOCABULARY_SIZE });

const CASES = {
  "returns the sampled ids and logprobs, including the stop id": async (harness: EngineHarness) => {
    await using tested = await harness.start(PLAYS_TURN);
    const generation = await tested.engine.generate(toRequest());
    assert.deepEqual(generation.outputIds, TURN.outputIds);
    assert.deepEqual(generation.logprobs, TURN.logprobs);
    assert.deepEqual(generation.finish, { type: "stop", matched: STOP_ID });
    assert.deepEqual(generation.discarded, []);
  },

  "reports an uninterrupted turn as one piece, with the request's id": async (
    harness: EngineHarness,
  ) => {
    await using tested = await harness.start(PLAYS_TURN);
    const { pieces } = await tested.engine.generate(toRequest());
    const seen = pieces.map(({ requestId, tokenCount, finish }) => [requestId, tokenCount, finish]);
    assert.deepEqual(seen, [["request-0", 5, "stop"]]);
  },

  "ends with `length` if the token budget is used up": async (harness: EngineHarness) => {
    const turn = { outputIds: [10, 11, 12], logprobs: [-0.5, -0.25, -0.125] };
    await using tested = await harness.start({ kind: "plays", turns: { "session-0": [turn] } });
    const generation = await tested.engine.generate(toRequest({ maxNewTokens: 3 }));
    assert.deepEqual(generation.outputIds, turn.outputIds);
    assert.deepEqual(generation.logprobs, turn.logprobs);
    assert.deepEqual(generation.finish, { type: "length" });
  },

  "sends exactly the prompt's ids, also of a long prompt": async (harness: EngineHarness) => {
    const promptIds = Array.from({ length: 20_000 }, (_, index) => (index * 7_919) % 151_936);
    await using tested = await harness.start(PLAYS_TURN);
    const generation = await tested.engine.generate(toRequest({ promptIds }));
    assert.deepEqual(tested.seenPrompts(), [promptIds]);
    assert.ok([undefined, promptIds.length].includes(generation.promptTokenCount));
  },

  "samples the turns of a session in order, each on its own prompt": async (
    harness: EngineHarness,
  ) => {
    const second: ConformanceTurn = { outputIds: [20, STOP_ID], logprobs: [-1, -2] };
    const turns = { "session-0": [TURN, second] };
    await using tested = await harness.start({ kind: "plays", turns });
    const first = await tested.engine.generate(toRequest());
    const promptIds = [5, 6, 7, ...first.outputIds, 30, 31];
    const next = await tested.engine.generate(toRequest({ promptIds, requestId: "request-1" }));
    assert.deepEqual(next.outputIds, second.outputIds);
    assert.deepEqual(next.logprobs, second.logprobs);
    assert.deepEqual(tested.seenPrompts(), [[5, 6, 7], promptIds]);
  },

  "keeps a hundred concurrent sessions apart": async (harness: EngineHarness) => {
    const sessions = Array.from({ length: 100 }, (_, index) => index);
    const turns = Object.fromEntries(
      sessions.map((index) => [
        `session-${index}`,
        [{ outputIds: [1_000 + index, STOP_ID], logprobs: [-(index + 1) / 64, -1] }],
      ]),
    );
    await using tested = await harness.start({ kind: "plays", turns });
    const generations = await Promise.all(
      sessions.map((index) =>
        tested.engine.generate(
          toRequest({ requestId: `request-${index}-`, sessionId: `session-${index}` }),
        ),
      ),
    );
    for (const [index, { outputIds, logprobs }] of generations.entries()) {
      assert.deepEqual(outputIds, [1_000 + index, STOP_ID]);
      assert.deepEqual(logprobs, [-(index + 1) / 64, -1]);
    }
  },

  "keeps concurrent calls with the same request id apart": async (harness: EngineHarness) => {
    const sessions = Array.from({ length: 32 }, (_, index) => index);
    const turns = Object.fromEntries(
      sessions.map((index) => [
        `session-${index}`,
        [{ outputIds: [1_000 + index, STOP_ID], logprobs: [-(index + 1) / 64, -1] }],
      ]),
    );
    await using tested = await harness.start({ kind: "plays", turns });
    const generations = await Promise.all(
      sessions.map((index) => tested.engine.generate(toRequest({ sessionId: `session-${index}` }))),
    );
    for (const [index, { outputIds, pieces, discarded }] of generations.entries()) {
      assert.deepEqual(outputIds, [1_000 + index, STOP_ID]);
      assert.deepEqual(
        pieces.map(({ requestId }) => requestId),
        ["request-0"],
      );
      assert.deepEqual(discarded, []);
    }
  },

  "resumes a turn that the engine interrupted, and keeps the sampled tokens": async (
    harness: EngineHarness,
  ) => {
    const turns = { "session-0": [TURN] };
    await using tested = await harness.start({ kind: "interrupts", turns, afterTokens: 2 });
    const generation = await tested.engine.generate(toRequest());
    assert.deepEqual(generation.outputIds, TURN.outputIds);
    assert.deepEqual(generation.logprobs, TURN.logprobs);
    assert.deepEqual(generation.finish, { type: "stop", matched: STOP_ID });
    assert.deepEqual(
      generation.pieces.map(({ tokenCount, finish }) => [tokenCount, finish]),
      [
        [2, "abort"],
        [3, "stop"],
      ],
    );
    assert.notEqual(generation.pieces[0]?.requestId, generation.pieces[1]?.requestId);
    assert.deepEqual(tested.seenPrompts(), [
      [5, 6, 7],
      [5, 6, 7, 10, 11],
    ]);
  },

  "streams each token of the turn once, in order": async (harness: EngineHarness) => {
    await using tested = await harness.start(PLAYS_TURN);
    const streamed = listen();
    const generation = await tested.engine.generate(toRequest(), { onTokens: streamed.onTokens });
    assert.deepEqual(generation.outputIds, TURN.outputIds);
    assert.deepEqual(streamed.outputIds, TURN.outputIds);
    assert.deepEqual(streamed.logprobs, TURN.logprobs);
    assert.deepEqual(generation.logprobs, TURN.logprobs);
    assert.deepEqual(generation.finish, { type: "stop", matched: STOP_ID });
    assert.deepEqual(generation.discarded, []);
  },

  "streams a long turn with small and large ids without a gap": async (harness: EngineHarness) => {
    const outputIds = Array.from({ length: 300 }, (_, index) => (index * 7_919) % 151_936);
    const logprobs = outputIds.map((_, index) => -(1 + (index % 97)) / 128);
    const turn = { outputIds, logprobs };
    await using tested = await harness.start({ kind: "plays", turns: { "session-0": [turn] } });
    const streamed = listen();
    const request = toRequest({ maxNewTokens: outputIds.length, stopTokenIds: [200_000] });
    const generation = await tested.engine.generate(request, { onTokens: streamed.onTokens });
    assert.deepEqual(generation.outputIds, outputIds);
    assert.deepEqual(streamed.outputIds, outputIds);
    assert.deepEqual(streamed.logprobs, logprobs);
  },

  "streams each token of a turn that the engine interrupted once, in order": async (
    harness: EngineHarness,
  ) => {
    const turns = { "session-0": [TURN] };
    await using tested = await harness.start({ kind: "interrupts", turns, afterTokens: 2 });
    const streamed = listen();
    const generation = await tested.engine.generate(toRequest(), { onTokens: streamed.onTokens });
    assert.deepEqual(generation.outputIds, TURN.outputIds);
    assert.deepEqual(streamed.outputIds, TURN.outputIds);
    assert.deepEqual(streamed.logprobs, TURN.logprobs);
  },

  "continues after the streamed tokens if the connection breaks in mid-stream": async (
    harness: EngineHarness,
  ) => {
    for (const afterTokens of [1, 2, 4]) {
      const turns = { "session-0": [TURN] };
      await using tested = await harness.start({ kind: "breaks", turns, afterTokens });
      const streamed = listen();
      const generation = await tested.engine.generate(toRequest(), { onTokens: streamed.onTokens });
      assert.deepEqual(streamed.outputIds, TURN.outputIds);
      assert.deepEqual(streamed.logprobs, TURN.logprobs);
      assert.deepEqual(generation.outputIds, TURN.outputIds);
      assert.deepEqual(generation.logprobs, TURN.logprobs);
      const pieces = generation.pieces.map(({ tokenCount, finish }) => [tokenCount, finish]);
      assert.deepEqual(pieces, [
        [afterTokens, "abort"],
        [TURN.outputIds.length - afterTokens, "stop"],
      ]);
      assert.deepEqual(
        generation.discarded.map(({ requestId }) => requestId),
        ["request-0"],
      );
      assert.deepEqual(tested.seenPrompts()[1], [5, 6, 7, ...TURN.outputIds.slice(0, afterTokens)]);
    }
  },

  "streams tokens before the turn ends, and none after it is cancelled": async (
    harness: EngineHarness,
  ) => {
    const turns = { "session-0": [TURN] };
    await using tested = await harness.start({ kind: "stalls", turns, afterTokens: 3 });
    const controller = new AbortController();
    const reason = new Error("enough");
    const streamed = listen(({ outputIds }) => {
      if (outputIds.length === 3) controller.abort(reason);
    });
    const call = tested.engine.generate(toRequest(), {
      signal: controller.signal,
      onTokens: streamed.onTokens,
    });
    await assert.rejects(call, (error) => error === reason);
    assert.deepEqual(streamed.outputIds, TURN.outputIds.slice(0, 3));
    assert.deepEqual(streamed.logprobs, TURN.logprobs.slice(0, 3));
  },

  "cancels concurrent calls with the same request id one by one": async (
    harness: EngineHarness,
  ) => {
    const turns = { "session-0": [TURN, TURN] };
    await using tested = await harness.start({ kind: "stalls", turns, afterTokens: 3 });
    const stalled = await Promise.all([1, 2].map(() => untilStreamed(tested.engine, 3)));
    for (const { call, controller } of stalled) {
      const reason = new Error("enough");
      controller.abort(reason);
      await assert.rejects(call, (error) => error === reason);
    }
  },

  "returns the requested side columns, or fails": async (harness: EngineHarness) => {
    await using tested = await harness.start(PLAYS_TURN);
    const { columns: specs } = harness;
    const request = toRequest({ columns: { specs: specs ?? SOME_COLUMNS, knownRows: 0 } });
    if (specs === undefined) {
      const { code } = await failureOf(tested.engine.generate(request));
      assert.ok(code === "engine/bad-request" || code === "engine/bad-reply", code);
      return;
    }
    const generation = await tested.engine.generate(request);
    checkGeneration(generation, request);
    assert.deepEqual(Object.keys(generation.columns ?? {}), namesOf(specs));
    assert.deepEqual(generation.outputIds, TURN.outputIds);
  },

  "returns only the rows that are not known, of each part of an interrupted turn": async (
    harness: EngineHarness,
  ) => {
    const { columns: specs } = harness;
    if (specs === undefined) return;
    const turns = { "session-0": [TURN] };
    for (const onTokens of [undefined, () => undefined]) {
      await using tested = await harness.start({ kind: "interrupts", turns, afterTokens: 2 });
      const request = toRequest({ columns: { specs, knownRows: 2 } });
      const generation = await tested.engine.generate(request, onTokens && { onTokens });
      checkGeneration(generation, request);
      const parts: ColumnParts = generation.columns ?? {};
      const firsts: readonly (number | undefined)[] = namesOf(specs).map(
        (name) => parts[name]?.[0]?.from,
      );
      assert.deepEqual(
        firsts,
        namesOf(specs).map((name) => (isOfAllTokens(name) ? 2 : 3)),
      );
    }
  },

  "throws the error that a listener throws": async (harness: EngineHarness) => {
    await using tested = await harness.start(PLAYS_TURN);
    const thrown = new Error("no more, thank you");
    const call = tested.engine.generate(toRequest(), {
      onTokens() {
        throw thrown;
      },
    });
    await assert.rejects(call, (error) => error === thrown);
  },

  "fails if an invalid token follows streamed tokens": async (harness: EngineHarness) => {
    const token = { id: VOCABULARY_SIZE };
    await using tested = await harness.start({ ...MALFORMS, token, replyCount: 1 });
    const streamed = listen();
    const call = tested.engine.generate(IN_VOCABULARY, { onTokens: streamed.onTokens });
    const error = await failureOf(call);
    assert.equal(error.code, "engine/bad-reply");
    assert.deepEqual(streamed.outputIds, TURN.outputIds.slice(0, 1));
    assert.ok(error.discarded.some(({ requestId }) => requestId === "request-0"));
  },

  "refuses an id outside the vocabulary, and reports the discarded tokens": async (
    harness: EngineHarness,
  ) => {
    for (const id of foreignIds(VOCABULARY_SIZE)) {
      const error = await refusalOf(harness, { id });
      assert.equal(error.code, "engine/bad-reply", `for the id ${id}`);
      assert.ok(error.discarded.some(({ requestId }) => requestId === "request-0"));
    }
  },

  "refuses an impossible logprob, and reports the discarded tokens": async (
    harness: EngineHarness,
  ) => {
    for (const logprob of IMPOSSIBLE_LOGPROBS) {
      const error = await refusalOf(harness, { logprob });
      const codes = ["engine/bad-reply", "engine/nan"];
      assert.ok(codes.includes(error.code), `Expected a refusal of ${logprob}, got ${error.code}`);
      assert.ok(error.discarded.some(({ requestId }) => requestId === "request-0"));
    }
  },

  "samples a turn again after it refused the reply, and records the refused one": async (
    harness: EngineHarness,
  ) => {
    for (const token of [{ id: VOCABULARY_SIZE }, { logprob: 0.1 }]) {
      await using tested = await harness.start({ ...MALFORMS, token, replyCount: 1 });
      const generation = await tested.engine.generate(IN_VOCABULARY);
      assert.deepEqual(generation.outputIds, TURN.outputIds);
      assert.deepEqual(generation.logprobs, TURN.logprobs);
      assert.deepEqual(
        generation.discarded.map(({ requestId }) => requestId),
        ["request-0"],
      );
      assert.deepEqual(tested.seenPrompts(), [IN_VOCABULARY.promptIds, IN_VOCABULARY.promptIds]);
    }
  },

  "sends no id outside the vocabulary": async (harness: EngineHarness) => {
    await using tested = await harness.start(PLAYS_TURN);
    for (const id of foreignIds(VOCABULARY_SIZE)) {
      await assert.rejects(tested.engine.generate({ ...IN_VOCABULARY, promptIds: [5, id] }));
    }
    assert.deepEqual(tested.seenPrompts(), []);
  },

  "fails as `engine/overloaded`, retryable, if the engine has no room": (harness) =>
    assertFails(harness, "engine/overloaded", true),

  "fails as `engine/server-error`, retryable, if the engine breaks": (harness) =>
    assertFails(harness, "engine/server-error", true),

  "fails as `engine/unauthorized` if the engine wants another key": (harness) =>
    assertFails(harness, "engine/unauthorized", false),

  "fails as `engine/prompt-too-long` if the prompt exceeds the context": (harness) =>
    assertFails(harness, "engine/prompt-too-long", false),

  "fails as `engine/bad-request` if the engine refuses the request": (harness) =>
    assertFails(harness, "engine/bad-request", false),

  "fails as `engine/unreachable`, retryable, if no server listens": async (
    harness: EngineHarness,
  ) => {
    await using tested = await harness.start({ kind: "unreachable" });
    const error = await failureOf(tested.engine.generate(toRequest()));
    assert.equal(error.code, "engine/unreachable");
    assert.equal(error.retryable, true);
    assert.equal((await failureOf(tested.engine.describe())).code, "engine/unreachable");
  },

  "throws the signal's reason if it is aborted during sampling": async (harness: EngineHarness) => {
    await using tested = await harness.start({ kind: "hangs" });
    const controller = new AbortController();
    const call = tested.engine.generate(toRequest(), { signal: controller.signal });
    await tested.untilSeen(1);
    const reason = new Error("the episode is over");
    controller.abort(reason);
    await assert.rejects(call, (error) => error === reason);
  },

  "sends no request if the signal is already aborted": async (harness: EngineHarness) => {
    await using tested = await harness.start(PLAYS_TURN);
    const reason = new Error("too late");
    const signal = AbortSignal.abort(reason);
    await assert.rejects(
      tested.engine.generate(toRequest(), { signal }),
      (error) => error === reason,
    );
    assert.deepEqual(tested.seenPrompts(), []);
  },

  "describes itself under its own kind": async (harness: EngineHarness) => {
    await using tested = await harness.start(PLAYS_TURN);
    const description = await tested.engine.describe();
    assert.equal(description.kind, tested.engine.kind);
    assert.ok(["tempered", "raw", "processed"].includes(description.logprobConvention ?? ""));
    assert.deepEqual(JSON.parse(JSON.stringify(description)), description);
  },

  "`close()` ends the calls in progress, and later calls fail": async (harness: EngineHarness) => {
    await using tested = await harness.start({ kind: "hangs" });
    const call = assert.rejects(tested.engine.generate(toRequest()), RolloutError);
    await tested.untilSeen(1);
    await tested.engine.close();
    await call;
    await assert.rejects(tested.engine.generate(toRequest()));
  },
} satisfies Readonly<Record<string, (harness: EngineHarness) => Promise<void>>>;

/** Joins the reported parts. Calls `onMore` after each part. */
function listen(onMore: (streamed: ConformanceTurn) => void = () => undefined) {
  const streamed = { outputIds: [] as number[], logprobs: [] as number[] };
  return {
    ...streamed,
    onTokens: ({ tokenIds, logprobs }: StreamedTokens): void => {
      assert.ok(tokenIds.length > 0, "Expected at least one token a call");
      assert.equal(tokenIds.length, logprobs.length);
      streamed.outputIds.push(...tokenIds);
      streamed.logprobs.push(...logprobs);
      onMore(streamed);
    },
  };
}

/**
 * Starts a call and resolves when it has reported this number of tokens. Rejects if the call fails
 * earlier.
 */
async function untilStreamed(engine: Engine, tokenCount: number) {
  const controller = new AbortController();
  const { signal } = controller;
  const streamed = withResolvers();
  const { onTokens } = listen(({ outputIds }) => {
    if (outputIds.length === tokenCount) streamed.resolve();
  });
  const call = engine.generate(toRequest(), { signal, onTokens });
  call.catch((error: unknown) => streamed.reject(error));
  await streamed.promise;
  return { call, controller };
}

/** Returns the failure of a call with only malformed replies. */
async function refusalOf(harness: EngineHarness, token: MalformedToken): Promise<RolloutError> {
  await using tested = await harness.start({ ...MALFORMS, token, replyCount: Infinity });
  return await failureOf(tested.engine.generate(IN_VOCABULARY));
}

async function assertFails(
  harness: EngineHarness,
  code: Extract<EngineScenario, { kind: "fails" }>["code"],
  retryable: boolean,
): Promise<void> {
  await using tested = await harness.start({ kind: "fails", code });
  const error = await failureOf(tested.engine.generate(toRequest()));
  assert.equal(error.code, code);
  assert.equal(error.party, "engine");
  assert.equal(error.retryable, retryable);
}

/** Returns the failure of a call. */
export async function failureOf(call: Promise<unknown>): Promise<RolloutError> {
  const error: unknown = await call.then(
    () => assert.fail("Cannot continue: the call succeeded, expected it to fail"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof RolloutError, `Expected a RolloutError, got ${String(error)}`);
  return error;
}
