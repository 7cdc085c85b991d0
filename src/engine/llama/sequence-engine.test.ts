import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { RolloutError } from "../../errors.ts";
import type { EngineScenario, EngineUnderTest } from "../../testing/engine-conformance.ts";
import { registerEngineConformance } from "../../testing/engine-conformance.ts";
import { malformTurn } from "../../testing/malformed-turn.ts";
import type { EvaluatedNext, LlamaSequence } from "./llama-library.ts";
import { createSequenceEngine } from "./sequence-engine.ts";
import type { SequenceSource } from "./sequence-pool.ts";
import { createSequencePool } from "./sequence-pool.ts";

const LIMITS = { vocabularySize: 151_936, contextLength: 32_768 };

/** A sequence whose next ids the test determines. */
function scriptedSequence(next: (ids: readonly number[]) => EvaluatedNext): LlamaSequence {
  let held: number[] = [];
  return {
    get contextTokens() {
      return held;
    },
    get nextTokenIndex() {
      return held.length;
    },
    async adaptStateToTokens(ids) {
      const different = held.findIndex((id, index) => id !== ids[index]);
      if (different !== -1) held = held.slice(0, different);
    },
    async clearHistory() {
      held = [];
    },
    async controlledEvaluate(ids) {
      return ids.map((id) => {
        held.push(typeof id === "number" ? id : id[0]);
        return typeof id === "number" ? undefined : next([...held]);
      });
    },
  };
}

/** The result of drawing an id with this logprob. */
function drawn(id: number, logprob: number): EvaluatedNext {
  const logits = new Map([[logprob === 0 ? id : id + 1, 0]]).set(id, logprob);
  return { next: { token: id, logits, totalLogitWeight: 1 } };
}

function createEngine(sequences: SequenceSource, dispose = async (): Promise<void> => {}) {
  return createSequenceEngine({
    sequences,
    description: { kind: "llama", logprobConvention: "tempered", contextLength: 32_768 },
    limits: LIMITS,
    endsGeneration: (id) => id === 3,
    dispose,
  });
}

async function startScenario(scenario: EngineScenario): Promise<EngineUnderTest> {
  const seen: (readonly number[])[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let leaseCount = 0;
  const turns = "turns" in scenario ? scenario.turns : {};
  const turnIndexes = new Map<string, number>();
  const sequences: SequenceSource = {
    lease({ sessionId }, { signal }) {
      leaseCount++;
      for (const { count, resolve } of waiting) if (leaseCount >= count) resolve();
      if (scenario.kind === "hangs") {
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        });
      }
      const turnIndex = turnIndexes.get(sessionId) ?? 0;
      turnIndexes.set(sessionId, turnIndex + 1);
      const scripted = turns[sessionId]?.[turnIndex];
      const turn = scenario.kind === "malforms" ? malformTurn(scripted!, scenario.token) : scripted;
      let index = 0;
      const stallsAt = scenario.kind === "stalls" ? scenario.afterTokens : Infinity;
      const sequence = scriptedSequence((ids) => {
        if (index === 0) seen.push(ids);
        if (index === stallsAt) throw new Error("Cannot stall: the call should be over");
        const next = drawn(turn!.outputIds[index]!, turn!.logprobs[index]!);
        index++;
        return next;
      });
      return Promise.resolve({ sequence, isSpoiled: false, release: () => undefined });
    },
  };
  const isShort = scenario.kind === "fails" && scenario.code === "engine/prompt-too-long";
  const isBad = scenario.kind === "fails" && scenario.code === "engine/bad-request";
  const engine = createSequenceEngine({
    sequences,
    description: { kind: "llama", logprobConvention: "tempered" },
    limits: {
      contextLength: isShort ? 8 : LIMITS.contextLength,
      vocabularySize: isBad ? 6 : LIMITS.vocabularySize,
    },
    endsGeneration: () => false,
    dispose: async () => {},
  });
  return {
    engine,
    seenPrompts: () => seen,
    untilSeen: (count) =>
      new Promise((resolve) => {
        if (leaseCount >= count) resolve();
        else waiting.push({ count, resolve });
      }),
    [Symbol.asyncDispose]: () => engine.close(),
  };
}

const noServer = "the model runs in this process, without a server";
registerEngineConformance(
  {
    name: "an engine over sequences",
    start: startScenario,
    skip: {
      "resumes a turn that the engine interrupted, and keeps the sampled tokens":
        "weights do not change under a running engine",
      "streams each token of a turn that the engine interrupted once, in order":
        "weights do not change under a running engine",
      "continues after the streamed tokens if the connection breaks in mid-stream": noServer,
      "cancels concurrent calls with the same request id one by one": "its sequences know no ids",
      "samples a turn again after it refused the reply, and records the refused one":
        "computing the turn again in this process gives the same result",
      "refuses an impossible logprob, and reports the discarded tokens":
        "logprobs are computed here, from logits that are checked below",
      "fails as `engine/overloaded`, retryable, if the engine has no room": noServer,
      "fails as `engine/server-error`, retryable, if the engine breaks":
        "how llama.cpp breaks is tested below",
      "fails as `engine/unauthorized` if the engine wants another key": noServer,
      "fails as `engine/unreachable`, retryable, if no server listens": noServer,
    },
  },
  { test, skip: (name, reason) => test.skip(`${name} (${reason})`) },
);

const request = {
  promptIds: [5, 6, 7],
  sampling: {},
  maxNewTokens: 4,
  stopTokenIds: [2],
  requestId: "request-0",
  sessionId: "session-0",
};

test("a turn ends at the model's own end id too", async () => {
  const script = [drawn(9, -1), drawn(3, -2)];
  const engine = createEngine(createSequencePool([scriptedSequence(() => script.shift()!)]));
  const { outputIds, finish } = await engine.generate(request);
  expect(outputIds).toEqual([9, 3]);
  expect(finish).toEqual({ type: "stop", matched: 3 });
});

test("an error of llama.cpp is a retryable server error, and its sequence is cleared", async () => {
  const steps: string[] = [];
  let isBroken = true;
  const sequence: LlamaSequence = {
    ...scriptedSequence(() => drawn(2, -1)),
    clearHistory: async () => void steps.push("cleared"),
    controlledEvaluate: async () => {
      steps.push("evaluated");
      if (isBroken) throw new Error("Eval has failed");
      return [drawn(2, -1)];
    },
  };
  const engine = createEngine(createSequencePool([{ ...sequence, nextTokenIndex: 2 }]));
  const error = await engine.generate(request).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RolloutError);
  expect(error).toMatchObject({
    code: "engine/server-error",
    retryable: true,
    message: "Cannot sample: llama.cpp failed (Eval has failed)",
  });
  isBroken = false;
  expect((await engine.generate(request)).outputIds).toEqual([2]);
  expect((await engine.generate(request)).outputIds).toEqual([2]);
  expect(steps).toEqual(["evaluated", "cleared", "evaluated", "evaluated"]);
});

test("logits that are not numbers are `engine/nan`", async () => {
  const nan = { next: { token: 9, logits: new Map([[9, Number.NaN]]), totalLogitWeight: 1 } };
  for (const evaluated of [nan, { next: { token: null } }, { next: {} }]) {
    const engine = createEngine(createSequencePool([scriptedSequence(() => evaluated)]));
    await expect(engine.generate(request)).rejects.toMatchObject({ code: "engine/nan" });
  }
});

test("a long prompt is computed in steps, and can be cancelled between them", async () => {
  const controller = new AbortController();
  const reason = new Error("the episode is over");
  const stepSizes: number[] = [];
  const plain = scriptedSequence(() => drawn(2, -1));
  const sequence: LlamaSequence = {
    ...plain,
    nextTokenIndex: 0,
    controlledEvaluate: async (ids) => {
      stepSizes.push(ids.length);
      if (stepSizes.length === 2) controller.abort(reason);
      return plain.controlledEvaluate(ids);
    },
  };
  const engine = createEngine(createSequencePool([sequence]));
  const promptIds = Array.from({ length: 1_000 }, (_, index) => index + 10);
  const call = engine.generate({ ...request, promptIds }, { signal: controller.signal });
  await expect(call).rejects.toBe(reason);
  expect(stepSizes).toEqual([256, 256]);
});

test("closing waits for the current step before it frees the model", async () => {
  const steps: string[] = [];
  let finishStep = (): void => {};
  const plain = scriptedSequence(() => drawn(9, -1));
  const sequence: LlamaSequence = {
    ...plain,
    nextTokenIndex: 2,
    controlledEvaluate: async (ids) => {
      await new Promise<void>((resolve) => (finishStep = resolve));
      steps.push("evaluated");
      return plain.controlledEvaluate(ids);
    },
  };
  const engine = createEngine(createSequencePool([sequence]), async () => {
    steps.push("freed");
  });
  const call = expect(engine.generate(request)).rejects.toMatchObject({
    code: "engine/unreachable",
  });
  await new Promise((resolve) => setImmediate(resolve));
  const closed = engine.close();
  finishStep();
  await call;
  await closed;
  await engine.close();
  expect(steps).toEqual(["evaluated", "freed"]);
});

test("penalties and parameters of other engines are refused", async () => {
  const engine = createEngine(createSequencePool([scriptedSequence(() => drawn(2, -1))]));
  for (const sampling of [{ frequencyPenalty: 0.5 }, { extra: { mirostat: 2 } }]) {
    const call = engine.generate({ ...request, sampling });
    await expect(call).rejects.toMatchObject({ code: "engine/bad-request" });
  }
});

test("calls leave no listener on a signal that lives longer", async () => {
  const sequence = scriptedSequence(() => drawn(2, -0.5));
  const engine = createEngine(createSequencePool([sequence]));
  const { signal } = new AbortController();
  // `AbortSignal.any()` would keep references on its parents.
  const properties = Reflect.ownKeys(signal);
  for (let turn = 0; turn < 20; turn++) {
    await engine.generate({ ...request, requestId: `${turn};` }, { signal });
    await engine.score({ ids: [5, 2], sampling: {} }, { signal });
  }
  expect(getEventListeners(signal, "abort")).toEqual([]);
  expect(Reflect.ownKeys(signal)).toEqual(properties);
  await engine.close();
});

test("a turn that is cut short ends with the current token", async () => {
  const cut = new AbortController();
  let count = 0;
  const sequence = scriptedSequence(() => {
    if (++count === 2) cut.abort();
    return drawn(9, -1);
  });
  const engine = createEngine(createSequencePool([sequence]));
  expect(await engine.generate(request, { cutShort: cut.signal })).toMatchObject({
    outputIds: [9, 9],
    finish: { type: "length" },
  });
  expect(await engine.generate(request, { cutShort: cut.signal })).toMatchObject({
    outputIds: [],
    finish: { type: "length" },
  });
});
