import type { DiscardedSampling } from "../../errors.ts";
import { RolloutError } from "../../errors.ts";
import { backOffMs } from "../../async/back-off.ts";
import type { Deadline } from "../../async/deadline.ts";
import { startDeadline } from "../../async/deadline.ts";
import { takeTurn } from "../../async/take-turn.ts";
import type { HttpEngineSettings } from "./http-engine-options.ts";
import type { AttemptFailure } from "./http-failure.ts";
import { failureOfOutcome, failureOfStatus, readErrorMessage } from "./http-failure.ts";
import { readRetryAfterMs, retryDelayMs } from "./http-retry.ts";
import type { HttpOutcome } from "./http-transport.ts";
import type { FailedReply } from "./piece-reply.ts";
import type { PieceStream } from "./piece-stream.ts";
import type { PieceExchange, SamplingProtocol, Unanswered } from "./sampling-protocol.ts";
import type { Worker, WorkerSet } from "./worker-set.ts";

/**
 * Number of invalid replies after which a call fails. One damaged reply is tolerated, but a server
 * that always replies wrongly fails soon.
 */
const MAX_BAD_REPLIES = 3;

/** The objects that a call of the engine works with. */
export interface CallContext {
  readonly workers: WorkerSet;
  readonly settings: HttpEngineSettings;
  readonly protocol: Pick<SamplingProtocol, "abortRequest" | "cutShort">;
  /** Returns a new id for a request at the server, different with each call. */
  readonly toWireId: (requestId: string) => string;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
  /** A signal. When it aborts, the call ends with the tokens it has. */
  readonly cutShort?: AbortSignal | undefined;
  /** Called if the server has no way to cut the call short. */
  readonly onNotCutShort?: (() => void) | undefined;
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal;
}

/** One request of a call. */
export interface CallRequest {
  /** The request's name in failures and records. */
  readonly requestId: string;
  readonly worker: Worker;
  /** Receives tokens before the answer is complete. */
  readonly stream?: PieceStream | undefined;
}

/** The purpose of a call, in the words of its failures. */
interface CallPurpose {
  readonly verb: "sample" | "score";
  /** Such as `the turn`. */
  readonly noun: string;
  /** Returns the sampled tokens that are lost if the call fails. */
  readonly lost: () => readonly DiscardedSampling[];
}

/**
 * One call of the engine. A call can take several requests, because requests fail or are interrupted. Makes the
 * requests, waits between them, and throws when the call is over. Disposing it stops its deadline.
 */
export class RepeatedCall implements Disposable {
  readonly #purpose: CallPurpose;
  readonly #context: CallContext;
  readonly #deadline: Deadline;
  /** Failures since the last progress. */
  #failureCount = 0;
  /** Invalid replies, in total. */
  #badReplyCount = 0;
  /** Interruptions, in total. */
  #resumeCount = 0;
  /** Interruptions since the last progress. */
  #idleResumeCount = 0;

  constructor(purpose: CallPurpose, context: CallContext) {
    const { settings, signal, closing } = context;
    const { clock, timeouts } = settings;
    this.#purpose = purpose;
    this.#context = context;
    const [parents, shared] = [[signal], [closing]];
    this.#deadline = startDeadline({
      ms: timeouts.turnMs,
      parents,
      shared,
      clock,
      isOurs: true,
    });
  }

  /**
   * Makes one request. Throws only errors that `ask` throws.
   *
   * Writing the prompt as JSON takes almost a millisecond, so the caller should yield to other
   * tasks first (`takeTurn()`) and then check that the call is not over.
   */
  async request<Reply extends { readonly type: string }>(
    { requestId, worker, stream }: CallRequest,
    ask: (exchange: PieceExchange) => Promise<Reply | Unanswered>,
  ): Promise<Reply | FailedReply> {
    const { settings, protocol, workers, toWireId } = this.#context;
    const wireId = toWireId(requestId);
    const { clock, timeouts, headers } = settings;
    const parents = [this.#deadline.signal];
    using deadline = startDeadline({ ms: timeouts.requestMs, parents, clock, isOurs: true });
    const { signal } = deadline;
    await using _ = this.#abortWhenCutShort(worker, wireId);
    const reply = await ask({
      worker,
      wireId,
      signal,
      stream,
      async post({ path, headers: further, ...rest }) {
        const request = { method: "POST", path, headers: { ...headers, ...further } } as const;
        const outcome = await worker.transport.send({ ...request, ...rest, signal });
        // Reading the reply blocks the event loop too, so other tasks run first.
        if (outcome.type === "reply") await takeTurn();
        return outcome;
      },
    });
    if (!isUnanswered(reply) || reply.outcome.type === "reply") workers.markUp(worker);
    if (!isUnanswered(reply)) return reply;
    const { outcome } = reply;
    const failure = toFailure(outcome, timeouts.requestMs);
    // Without an abort, the server would sample this request beside the one that replaces it.
    if (failure.maySample) await protocol.abortRequest(worker, wireId);
    if (outcome.type !== "reply" && !this.#deadline.signal.aborted) workers.markDown(worker);
    const isCutOff = outcome.type === "aborted" && !deadline.expired;
    const problem = isCutOff
      ? `${this.#purpose.noun} was over before the answer came`
      : failure.problem;
    return { type: "failed", failure: { ...failure, problem } };
  }

  /** Makes the server stop early and answer with its sampled tokens, if it supports that. */
  #abortWhenCutShort(worker: Worker, wireId: string): AsyncDisposable {
    const { cutShort, onNotCutShort, protocol } = this.#context;
    let stopping: Promise<void> | undefined;
    const stopServer = async (): Promise<void> => {
      const stopped = protocol.cutShort?.(worker, wireId);
      if (!(await (stopped ?? protocol.abortRequest(worker, wireId)))) onNotCutShort?.();
    };
    const onCut = (): void => {
      stopping = stopServer();
      // Disposing the result throws an error of `onNotCutShort`.
      stopping.catch(() => {});
    };
    cutShort?.addEventListener("abort", onCut, { once: true });
    return {
      async [Symbol.asyncDispose]() {
        cutShort?.removeEventListener("abort", onCut);
        await stopping;
      },
    };
  }

  /** True if the call must end with the tokens it has. */
  get isCutShort(): boolean {
    return this.#context.cutShort?.aborted === true;
  }

  /** Records progress: earlier failures and interruptions no longer count. */
  noteProgress(): void {
    this.#failureCount = 0;
    this.#idleResumeCount = 0;
  }

  /**
   * Waits after an interruption.
   *
   * @throws RolloutError `engine/interrupted` if the call was interrupted too often.
   */
  async waitToResume({ requestId, worker }: CallRequest, message: string): Promise<void> {
    const { maxResumes, delayMs, maxDelayMs } = this.#context.settings.resume;
    if (this.#resumeCount === maxResumes) {
      throw new RolloutError(
        "engine/interrupted",
        `Cannot ${this.#purpose.verb} request ${requestId} at ${worker.url}: ` +
          `interrupted ${maxResumes + 1} times (${message || "no reason given"}), ` +
          `expected at most ${maxResumes}`,
        { retryable: true, discarded: this.#purpose.lost() },
      );
    }
    this.#resumeCount += 1;
    this.#idleResumeCount += 1;
    await this.#wait(backOffMs(this.#idleResumeCount, { firstMs: delayMs, mostMs: maxDelayMs }));
  }

  /**
   * Waits after a failure.
   *
   * @throws RolloutError if the failure cannot be retried, or was retried often enough.
   */
  async waitToRetry({ requestId, worker }: CallRequest, failure: AttemptFailure): Promise<void> {
    const { retry: policy, random } = this.#context.settings;
    const failureCount = ++this.#failureCount;
    const isBadReply = failure.code === "engine/bad-reply" || failure.code === "engine/nan";
    if (isBadReply) this.#badReplyCount += 1;
    const isLast = failureCount >= policy.maxAttempts || this.#badReplyCount >= MAX_BAD_REPLIES;
    if (!failure.retry || isLast) {
      const attempts = failureCount === 1 ? "" : ` (attempt ${failureCount})`;
      throw new RolloutError(
        failure.code,
        `Cannot ${this.#purpose.verb} request ${requestId} at ${worker.url}${attempts}: ` +
          `${failure.problem}, expected ${failure.expected}`,
        {
          cause: failure.cause,
          retryable: failure.retry && !isBadReply && failure.code !== "engine/timeout",
          discarded: this.#purpose.lost(),
        },
      );
    }
    const { retryAfterMs = 0 } = failure;
    await this.#wait(retryDelayMs({ failureCount, policy, random, retryAfterMs }));
  }

  /** Throws if the call is cancelled, the engine is closed, or the call's time is over. */
  throwIfOver(): void {
    if (!this.#deadline.signal.aborted) return;
    const { signal, closing, settings } = this.#context;
    const { verb, noun, lost } = this.#purpose;
    signal?.throwIfAborted();
    if (closing.aborted) {
      throw new RolloutError("engine/unreachable", `Cannot ${verb}: the engine was closed`, {
        discarded: lost(),
      });
    }
    throw new RolloutError(
      "engine/timeout",
      `Cannot ${verb} at ${settings.urls.join(", ")}: ` +
        `${noun} took longer than ${settings.timeouts.turnMs} ms, expected it to end in time`,
      { discarded: lost() },
    );
  }

  /** Waits `ms` milliseconds, or until the call is over or cut short. */
  async #wait(ms: number): Promise<void> {
    const parents = [this.#deadline.signal, this.#context.cutShort];
    using end = startDeadline({ ms: Infinity, parents });
    const { signal } = end;
    try {
      await this.#context.settings.clock.sleep(ms, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#deadline[Symbol.dispose]();
  }
}

function isUnanswered(reply: { readonly type: string }): reply is Unanswered {
  return reply.type === "unanswered";
}

function toFailure(outcome: HttpOutcome, deadlineMs: number): AttemptFailure {
  if (outcome.type !== "reply") return failureOfOutcome(outcome, deadlineMs);
  const failure = failureOfStatus(outcome.status, readErrorMessage(outcome.text));
  const retryAfterMs = readRetryAfterMs(outcome.headers);
  return retryAfterMs === undefined ? failure : { ...failure, retryAfterMs };
}
