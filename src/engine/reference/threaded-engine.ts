import { randomInt } from "node:crypto";
import { ownBug, RolloutError, UsageError } from "../../errors.ts";
import { checkRequest, checkTopCount } from "../check-request.ts";
import { checkGeneration } from "../check-sampled.ts";
import type {
  Engine,
  EngineDescription,
  GenerateOptions,
  GenerateRequest,
  Generation,
  ScoreRequest,
  TopScoreRequest,
} from "../engine.ts";
import type { RequestLimits } from "../in-process/check-request.ts";
import {
  checkGenerateRequest,
  checkScoreLimits,
  checkTemperature,
  checkSampling,
} from "../in-process/check-request.ts";
import { toGeneration } from "../in-process/to-generation.ts";
import { TokenListener } from "../in-process/token-listener.ts";
import { SessionPlacement } from "./session-placement.ts";
import type { SamplingThread, StartThread } from "./thread/start-thread.ts";
import type {
  GenerateCall,
  ScoreCall,
  TokenMessage,
  ThreadReply,
} from "./thread/thread-message.ts";

/** An engine in this process that samples and scores. */
export type ScoringEngine = Engine & Required<Pick<Engine, "score" | "scoreTop">>;

/** A scoring engine that can replace its weights. */
export interface ReloadableEngine extends ScoringEngine {
  /**
   * Loads the weights of another folder of the same model, for example of a training step. Calls
   * during the load wait for it. If the load fails, the engine keeps the previous weights.
   *
   * @param policyVersion - The version that is recorded from then on. Default: unchanged.
   * @throws UsageError naming folder, file and remedy if the weights cannot be used, and while a
   *   call is pending.
   */
  loadWeights(modelDir: string, policyVersion?: string): Promise<void>;
}

/** A pending call. */
interface PendingCall {
  readonly thread: number;
  readonly resolve: (reply: ThreadReply | ListenerFailed) => void;
  readonly reject: (error: unknown) => void;
  readonly listener: TokenListener | undefined;
}

/** The end of a call after its `onTokens` has thrown. */
interface ListenerFailed {
  readonly type: "listener-failed";
}

type Call = Omit<GenerateCall, "key"> | Omit<ScoreCall, "key">;

/**
 * Creates an engine over threads that sample and score. The engine checks requests, assigns sessions to threads, and
 * resolves each call with its reply. Only the threads compute, so the event loop stays free.
 */
export function createThreadedEngine({
  startThreads,
  description,
  limits,
  reload,
}: {
  startThreads: readonly StartThread[];
  description: EngineDescription;
  limits: RequestLimits;
  /** Replaces the weights by those of a folder. If the function rejects, the engine has the previous weights. */
  reload: (modelDir: string) => Promise<void>;
}): ReloadableEngine {
  const pending = new Map<number, PendingCall>();
  const placement = new SessionPlacement(startThreads.length);
  let nextKey = 0;
  /** The reason why the engine accepts no more calls. */
  let end: RolloutError | undefined;
  let described = description;
  /** Resolves when no weights are being loaded. */
  const state: { loading?: Promise<void> | undefined } = {};

  const threads: readonly SamplingThread[] = startThreads.map((start) =>
    start({
      onMessage: (message) =>
        message.type === "sampled" ? report(message) : settle(message.key)?.resolve(message),
      onLost: (cause) =>
        endAll(
          new RolloutError("engine/unreachable", "Cannot sample: a thread is gone", { cause }),
        ),
    }),
  );

  /** Removes a pending call and returns it. Returns `undefined` if it has ended already. */
  function settle(key: number): PendingCall | undefined {
    const call = pending.get(key);
    if (call === undefined) return undefined;
    pending.delete(key);
    placement.leave(call.thread);
    if (placement.loadOf(call.thread) === 0) threads[call.thread]?.setBusy(false);
    return call;
  }

  /** Reports a sampled token. Ends the call if its `onTokens` throws. */
  function report({ key, id, logprob }: TokenMessage): void {
    const call = pending.get(key);
    call?.listener?.report({ tokenIds: [id], logprobs: [logprob] });
    if (call?.listener?.hasThrown !== true) return;
    threads[call.thread]?.post({ type: "abort", key });
    settle(key)?.resolve({ type: "listener-failed" });
  }

  function endAll(reason: RolloutError): void {
    end ??= reason;
    for (const key of pending.keys()) settle(key)?.reject(reason);
  }

  function send(
    call: Call,
    {
      sessionId,
      signal,
      cutShort,
      listener,
    }: { sessionId: string; listener?: TokenListener } & Pick<
      GenerateOptions,
      "signal" | "cutShort"
    >,
  ): Promise<ThreadReply | ListenerFailed> {
    const key = nextKey++;
    const thread = placement.enter(sessionId);
    threads[thread]?.setBusy(true);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        threads[thread]?.post({ type: "abort", key });
        settle(key)?.reject(signal?.reason);
      };
      const onCut = (): void => threads[thread]?.post({ type: "cut-short", key });
      const stopListening = (): void => {
        signal?.removeEventListener("abort", onAbort);
        cutShort?.removeEventListener("abort", onCut);
      };
      pending.set(key, {
        thread,
        listener,
        resolve: (reply) => (stopListening(), resolve(reply)),
        reject: (error) => (stopListening(), reject(error)),
      });
      signal?.addEventListener("abort", onAbort, { once: true });
      cutShort?.addEventListener("abort", onCut, { once: true });
      threads[thread]?.post({ ...call, key });
      if (cutShort?.aborted) onCut();
    });
  }

  async function generate(
    request: GenerateRequest,
    { signal, cutShort, onTokens }: GenerateOptions = {},
  ): Promise<Generation> {
    signal?.throwIfAborted();
    if (end !== undefined) throw end;
    checkGenerateRequest(request, limits);
    checkRequest(request);
    while (state.loading !== undefined) await state.loading;
    signal?.throwIfAborted();
    const { sessionId, maxNewTokens, stopTokenIds } = request;
    const call = {
      type: "generate",
      promptIds: Int32Array.from(request.promptIds),
      maxNewTokens,
      stopTokenIds,
      sampling: checkSampling(request.sampling, () => randomInt(2 ** 48 - 1)),
      sessionId,
      ...(request.columns !== undefined && { columns: request.columns }),
      streams: onTokens !== undefined,
    } as const;
    const listener = new TokenListener(request, onTokens);
    const reply = await send(call, { sessionId, signal, cutShort, listener });
    if (reply.type === "listener-failed") listener.complete({ outputIds: [], logprobs: [] });
    if (reply.type !== "generated") throw failureOf(reply);
    const version = described.policyVersion ?? "";
    const generation = checkTurn(request, toGeneration(request, reply, version));
    listener.complete(generation);
    return generation;
  }

  async function score(
    { topCount, ...request }: ScoreRequest & Partial<TopScoreRequest>,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<{ readonly logprobs: readonly number[]; readonly tops?: Uint8Array }> {
    signal?.throwIfAborted();
    if (end !== undefined) throw end;
    const from = checkScoreLimits(request, limits);
    const temperature = checkTemperature(request.sampling.temperature);
    if (topCount !== undefined) checkTopCount(topCount);
    if (from === request.ids.length) return { logprobs: [], tops: new Uint8Array() };
    while (state.loading !== undefined) await state.loading;
    const call = {
      type: "score",
      ids: Int32Array.from(request.ids),
      from,
      temperature,
      ...(topCount !== undefined && { topCount }),
    } as const;
    const reply = await send(call, { sessionId: "", signal });
    if (reply.type !== "scored") throw failureOf(reply);
    return reply;
  }

  async function loadWeights(modelDir: string, policyVersion?: string): Promise<void> {
    if (end !== undefined) throw end;
    while (state.loading !== undefined) await state.loading;
    if (pending.size > 0) {
      throw new UsageError(
        `Cannot load ${modelDir}: ${pending.size} calls are pending; wait for them, or cut them short`,
      );
    }
    const done = reload(modelDir);
    state.loading = done.catch(() => {}).finally(() => (state.loading = undefined));
    await state.loading;
    // Cleared after a failed load too, because nothing in the cache is valid for sure.
    for (const thread of threads) thread.post({ type: "clear-cache" });
    await done;
    const version = policyVersion === undefined ? {} : { policyVersion };
    described = { ...described, model: modelDir, ...version };
  }

  return {
    kind: description.kind,
    generate,
    score: async (request, options) => (await score(request, options)).logprobs,
    async scoreTop(request, options) {
      const { logprobs, tops } = await score(request, options);
      if (tops === undefined) throw ownBug("A thread listed no most probable ids");
      return { logprobs, tops };
    },
    loadWeights,
    async describe({ signal } = {}) {
      signal?.throwIfAborted();
      if (end !== undefined) throw end;
      return described;
    },
    async load({ signal } = {}) {
      signal?.throwIfAborted();
      if (end !== undefined) throw end;
      return { workers: [{ runningCount: pending.size }], silent: [] };
    },
    async close() {
      endAll(new RolloutError("engine/unreachable", "Cannot sample: the engine was closed"));
      await Promise.all(threads.map((thread) => thread.close()));
    },
  };
}

/**
 * Checks a turn without its columns, which this engine made itself.
 *
 * @throws RolloutError `engine/bad-reply` or `engine/nan`.
 */
function checkTurn(
  { columns: _columns, ...request }: GenerateRequest,
  { columns, ...turn }: Generation,
): Generation {
  return { ...checkGeneration(turn, request), ...(columns !== undefined && { columns }) };
}

function failureOf(reply: ThreadReply | ListenerFailed): Error {
  return reply.type === "failed"
    ? new RolloutError(reply.code, reply.message)
    : ownBug(`A thread answered with ${reply.type}`);
}
