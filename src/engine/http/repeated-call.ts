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
 * Replies of one call that cannot be used before it fails: enough for one that was damaged, and few
 * where the server's every reply is like that.
 */
const MOST_BAD_REPLIES = 3;

/** What a call of the engine works with. */
export interface CallContext {
  readonly workers: WorkerSet;
  readonly settings: HttpEngineSettings;
  readonly protocol: Pick<SamplingProtocol, "abortRequest" | "cutShort">;
  /** Names a request at the server, each time otherwise. */
  readonly toWireId: (requestId: string) => string;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
  /** Aborted, the call ends with what it has. */
  readonly cutShort?: AbortSignal | undefined;
  /** Told where the server cannot be told to cut the call short. */
  readonly onNotCutShort?: (() => void) | undefined;
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal;
}

/** One request of a call. */
export interface CallRequest {
  /** Names it in what failures say and records hold. */
  readonly requestId: string;
  readonly worker: Worker;
  /** Takes what comes before the answer is whole. */
  readonly stream?: PieceStream | undefined;
}

/** What a call is for, in the words of its failures. */
interface CallPurpose {
  readonly verb: "sample" | "score";
  /** Such as `the turn`. */
  readonly noun: string;
  /** What was sampled and is lost where the call fails. */
  readonly lost: () => readonly DiscardedSampling[];
}

/**
 * One call of the engine, which takes several requests where some fail or are interrupted: makes
 * them, waits in between, and says when the call is over. Disposing it stops its deadline.
 */
export class RepeatedCall implements Disposable {
  readonly #purpose: CallPurpose;
  readonly #context: CallContext;
  readonly #deadline: Deadline;
  /** Failures since something last came. */
  #failureCount = 0;
  /** Replies that could not be used, in all. */
  #badReplyCount = 0;
  /** Interruptions, in all. */
  #resumeCount = 0;
  /** Interruptions since something last came. */
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
   * Makes one request. Throws only what `ask` throws. Writing its prompt as JSON is a good part of a
   * millisecond's work: whoever makes it takes a turn, and looks whether the call is over by then.
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
        // So is reading the reply.
        if (outcome.type === "reply") await takeTurn();
        return outcome;
      },
    });
    if (!isUnanswered(reply) || reply.outcome.type === "reply") workers.markUp(worker);
    if (!isUnanswered(reply)) return reply;
    const { outcome } = reply;
    const failure = toFailure(outcome, timeouts.requestMs);
    // What is not told to stop goes on sampling beside the request that takes its place.
    if (failure.maySample) await protocol.abortRequest(worker, wireId);
    if (outcome.type !== "reply" && !this.#deadline.signal.aborted) workers.markDown(worker);
    const isCutOff = outcome.type === "aborted" && !deadline.expired;
    const problem = isCutOff
      ? `${this.#purpose.noun} was over before the answer came`
      : failure.problem;
    return { type: "failed", failure: { ...failure, problem } };
  }

  /** Has the server stop early and answer with what it has sampled, where it can be told to. */
  #abortWhenCutShort(worker: Worker, wireId: string): AsyncDisposable {
    const { cutShort, onNotCutShort, protocol } = this.#context;
    let told: Promise<void> | undefined;
    const tell = async (): Promise<void> => {
      const told = protocol.cutShort?.(worker, wireId);
      if (!(await (told ?? protocol.abortRequest(worker, wireId)))) onNotCutShort?.();
    };
    const onCut = (): void => {
      told = tell();
      // Whoever waits for the answer is told of what the listener throws.
      told.catch(() => {});
    };
    cutShort?.addEventListener("abort", onCut, { once: true });
    return {
      async [Symbol.asyncDispose]() {
        cutShort?.removeEventListener("abort", onCut);
        await told;
      },
    };
  }

  /** Whether the call is to end with what it has. */
  get isCutShort(): boolean {
    return this.#context.cutShort?.aborted === true;
  }

  /** Something came: what failed and was interrupted before that counts no longer. */
  noteProgress(): void {
    this.#failureCount = 0;
    this.#idleResumeCount = 0;
  }

  /**
   * Waits after an interruption.
   *
   * @throws RolloutError `engine/interrupted` where the call was interrupted too often.
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
   * @throws RolloutError where it is no use to try again, or was tried often enough.
   */
  async waitToRetry({ requestId, worker }: CallRequest, failure: AttemptFailure): Promise<void> {
    const { retry: policy, random } = this.#context.settings;
    const failureCount = ++this.#failureCount;
    const isBadReply = failure.code === "engine/bad-reply" || failure.code === "engine/nan";
    if (isBadReply) this.#badReplyCount += 1;
    const isLast = failureCount >= policy.maxAttempts || this.#badReplyCount >= MOST_BAD_REPLIES;
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

  /** Throws where the call is cancelled, the engine closed, or the call's own time over. */
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

  /** Waits, or less where the call is over or cut short before that. */
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
