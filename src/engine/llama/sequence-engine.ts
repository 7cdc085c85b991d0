import { toArray } from "../../values/to-array.ts";
import { randomInt } from "node:crypto";
import { setMaxListeners } from "node:events";
import { describeError, RolloutError } from "../../errors.ts";
import { checkRequest } from "../check-request.ts";
import { checkGeneration } from "../check-sampled.ts";
import { startDeadline } from "../../async/deadline.ts";
import type { Engine, EngineDescription, GenerateRequest, ScoreRequest } from "../engine.ts";
import type { RequestLimits } from "../in-process/check-request.ts";
import {
  checkGenerateRequest,
  checkScoreLimits,
  checkTemperature,
  checkSampling,
} from "../in-process/check-request.ts";
import { toGeneration, type SampledTurn } from "../in-process/to-generation.ts";
import { TokenListener } from "../in-process/token-listener.ts";
import { seededRandomNumbers } from "../in-process/random-numbers.ts";
import type { LlamaSequence } from "./llama-library.ts";
import type { NextSampling } from "./next-id.ts";
import { drawNext, keepPrefix, prefill, scoreIds } from "./sequence-steps.ts";
import type { SequenceLease, SequenceSource, SequenceRequest } from "./sequence-pool.ts";

/** An engine in this process that samples and scores. */
export type LlamaEngine = Engine & Required<Pick<Engine, "score">>;

/**
 * Creates an engine over sequences of llama.cpp. A cancelled call ends after the current step,
 * which is one token or one part of the prompt.
 */
export function createSequenceEngine({
  sequences,
  description,
  limits,
  endsGeneration,
  dispose,
}: {
  sequences: SequenceSource;
  description: EngineDescription;
  limits: RequestLimits;
  /** True if the id is one of the model's own ends of generation. */
  endsGeneration: (id: number) => boolean;
  /** Frees all memory. Called once, after all computation has ended. */
  dispose: () => Promise<void>;
}): LlamaEngine {
  const closing = new AbortController();
  // Each pending call listens to the signal.
  setMaxListeners(0, closing.signal);
  const pending = new Set<Promise<unknown>>();

  /**
   * Runs `work` with a sequence and returns the sequence afterwards, marked as spoiled if the work
   * failed.
   */
  async function withSequence<T>(
    request: SequenceRequest,
    {
      signal,
      work,
    }: {
      signal: AbortSignal | undefined;
      work: (sequence: LlamaSequence, signal: AbortSignal) => Promise<T>;
    },
  ): Promise<T> {
    // A signal of this call only, so that no listener stays on the longer-lived signals.
    using call = startDeadline({ ms: Infinity, parents: [closing.signal, signal] });
    const stop = call.signal;
    const run = async (): Promise<T> => {
      const lease = await sequences.lease(request, { signal: stop });
      return await useLease(lease, { signal: stop, work });
    };
    const running = run();
    pending.add(running);
    try {
      return await running;
    } finally {
      pending.delete(running);
    }
  }

  return {
    kind: description.kind,
    async generate(request, { signal, cutShort, onTokens } = {}) {
      signal?.throwIfAborted();
      closing.signal.throwIfAborted();
      checkGenerateRequest(request, limits);
      checkRequest(request);
      if (request.columns !== undefined) throw noColumns();
      const { sessionId } = request;
      // The library expects an array.
      const promptIds = toArray(request.promptIds);
      const sampling = checkSampling(request.sampling, () => randomInt(2 ** 48 - 1));
      const random = seededRandomNumbers(sampling.seed, sessionId);
      const listener = new TokenListener(request, onTokens);
      const work = (sequence: LlamaSequence, stop: AbortSignal) =>
        sampleSequence(sequence, {
          request,
          promptIds,
          sampling,
          random,
          endsGeneration,
          cutShort,
          listener,
          signal: stop,
        });
      const turn = await withSequence({ sessionId, ids: promptIds }, { signal, work });
      const { policyVersion = "" } = description;
      const generation = toGeneration(request, turn, policyVersion);
      if (!listener.hasThrown) checkGeneration(generation, request);
      listener.complete(generation);
      return generation;
    },
    async score(request: ScoreRequest, { signal } = {}) {
      signal?.throwIfAborted();
      closing.signal.throwIfAborted();
      const from = checkScoreLimits(request, limits);
      const temperature = checkTemperature(request.sampling.temperature);
      const { ids } = request;
      if (from === ids.length) return [];
      const work = (sequence: LlamaSequence, stop: AbortSignal) =>
        scoreIds(sequence, { ids, from, temperature, signal: stop });
      return await withSequence({ sessionId: "", ids }, { signal, work });
    },
    async describe({ signal } = {}) {
      signal?.throwIfAborted();
      closing.signal.throwIfAborted();
      return description;
    },
    async load({ signal } = {}) {
      signal?.throwIfAborted();
      closing.signal.throwIfAborted();
      return { workers: [{ runningCount: pending.size }], silent: [] };
    },
    async close() {
      if (closing.signal.aborted) return;
      closing.abort(new RolloutError("engine/unreachable", "Cannot sample: the engine was closed"));
      await Promise.allSettled(pending);
      await dispose();
    },
  };
}

async function useLease<T>(
  lease: SequenceLease,
  {
    signal,
    work,
  }: {
    signal: AbortSignal;
    work: (sequence: LlamaSequence, signal: AbortSignal) => Promise<T>;
  },
): Promise<T> {
  const { sequence } = lease;
  let spoiled = true;
  try {
    if (lease.isSpoiled) await sequence.clearHistory();
    const result = await work(sequence, signal);
    spoiled = false;
    return result;
  } catch (error) {
    if (signal.aborted && error === signal.reason) {
      // The current step was completed, so the computed state is valid.
      spoiled = false;
      throw error;
    }
    if (error instanceof RolloutError) throw error;
    throw new RolloutError(
      "engine/server-error",
      `Cannot sample: llama.cpp failed (${describeError(error)})`,
      { cause: error, retryable: true },
    );
  } finally {
    lease.release({ spoiled });
  }
}

async function sampleSequence(
  sequence: LlamaSequence,
  {
    request,
    promptIds,
    sampling,
    random,
    endsGeneration,
    signal,
    cutShort,
    listener,
  }: {
    request: GenerateRequest;
    promptIds: readonly number[];
    sampling: NextSampling;
    random: (position: number) => number;
    endsGeneration: (id: number) => boolean;
    signal: AbortSignal;
    cutShort: AbortSignal | undefined;
    listener: TokenListener;
  },
): Promise<SampledTurn> {
  const { maxNewTokens } = request;
  const stopIds = new Set(request.stopTokenIds);
  const cachedTokenCount = await keepPrefix(sequence, {
    ids: promptIds,
    // The last id is computed in any case, to draw the id after it.
    maxCount: promptIds.length - 1,
    signal,
  });
  await prefill(sequence, { ids: promptIds.slice(cachedTokenCount, -1), signal });
  const outputIds: number[] = [];
  const logprobs: number[] = [];
  const turn = { outputIds, logprobs, cachedTokenCount };
  let last = promptIds.at(-1) ?? 0;
  const isOver = (): boolean =>
    outputIds.length === maxNewTokens || cutShort?.aborted === true || listener.hasThrown;
  while (!isOver()) {
    const position = promptIds.length + outputIds.length;
    const drawn = await drawNext(sequence, { last, sampling, random: random(position), signal });
    last = drawn.id;
    outputIds.push(drawn.id);
    logprobs.push(drawn.logprob);
    // A cancelled call gets no more tokens.
    if (!signal.aborted) listener.report({ tokenIds: [drawn.id], logprobs: [drawn.logprob] });
    if (stopIds.has(last) || endsGeneration(last)) {
      return { ...turn, finish: { type: "stop", matched: last } };
    }
  }
  return { ...turn, finish: { type: "length" } };
}

function noColumns(): RolloutError {
  return new RolloutError(
    "engine/bad-request",
    "Cannot sample: the request has side columns, expected none: llama.cpp returns none",
  );
}
