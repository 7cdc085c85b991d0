import { RolloutError } from "../errors.ts";
import type { Deadline } from "../internal/deadline.ts";
import { startDeadline } from "../internal/deadline.ts";
import type { Finish, GenerateRequest, Generation } from "./engine.ts";
import type { HttpEngineSettings } from "./http-engine-options.ts";
import type { AttemptFailure } from "./http-failure.ts";
import { failureOfOutcome, failureOfStatus, readErrorMessage } from "./http-failure.ts";
import { readRetryAfterMs, retryDelayMs } from "./http-retry.ts";
import type { HttpOutcome } from "./http-transport.ts";
import type { PieceReply, SampledPiece } from "./piece-reply.ts";
import type { PieceRequest } from "./piece-request.ts";
import { findStop } from "./piece-request.ts";
import type { SamplingProtocol } from "./sampling-protocol.ts";
import { TurnProgress } from "./turn-progress.ts";
import type { Worker, WorkerSet } from "./worker-set.ts";

/** What sampling a turn works with. */
export interface TurnContext {
  readonly workers: WorkerSet;
  readonly settings: HttpEngineSettings;
  readonly protocol: SamplingProtocol;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal;
}

/**
 * Samples one turn: repeats what failed, resumes what the engine interrupted. A request that may
 * have been sampled is aborted and recorded before a fresh one takes its place.
 *
 * @throws RolloutError, or the signal's reason, as `Engine.generate()` says.
 */
export async function sampleTurn(
  request: GenerateRequest,
  context: TurnContext,
): Promise<Generation> {
  const { settings, signal, closing } = context;
  const { clock, timeouts } = settings;
  using turn = startDeadline({ ms: timeouts.turnMs, parents: [signal, closing], clock });
  const progress = new TurnProgress(request);
  for (;;) {
    throwIfOver(progress, turn, context);
    const worker = context.workers.pick(request.sessionId);
    const piece = progress.nextPiece();
    const reply = await samplePiece({ piece, worker, turn, context });
    switch (reply.type) {
      case "finished":
        progress.add(piece, reply.piece, reply.finish.type);
        if (reply.surplus !== undefined) {
          progress.discard(piece, reply.surplus.reason, reply.surplus.tokenCount);
        }
        return progress.toGeneration(reply.finish);
      case "interrupted": {
        const finish = finishOfInterrupted(reply.piece, piece);
        progress.add(piece, reply.piece, finish?.type ?? "abort");
        if (finish !== undefined) return progress.toGeneration(finish);
        const delayMs = resumeDelayMs(progress, { reply, piece, worker, settings });
        await wait(delayMs, turn, context);
        break;
      }
      case "nan-happened":
        countNan(progress, { piece, worker, reply });
        break;
      case "failed": {
        const { failure, tokenCount } = reply;
        if (failure.maySample) progress.discard(piece, failure.problem, tokenCount);
        throwIfOver(progress, turn, context);
        const delayMs = failureDelayMs(progress, { failure, piece, worker, settings });
        await wait(delayMs, turn, context);
        break;
      }
      default:
        reply satisfies never;
    }
  }
}

/** One request. Does not throw. */
async function samplePiece({
  piece,
  worker,
  turn,
  context,
}: {
  piece: PieceRequest;
  worker: Worker;
  turn: Deadline;
  context: TurnContext;
}): Promise<PieceReply> {
  const { clock, timeouts, headers } = context.settings;
  using deadline = startDeadline({ ms: timeouts.requestMs, parents: [turn.signal], clock });
  const { signal } = deadline;
  const reply = await context.protocol.samplePiece(piece, {
    worker,
    signal,
    post: ({ path, headers: further, body }) =>
      worker.transport.send({
        method: "POST",
        path,
        headers: { ...headers, ...further },
        body,
        signal,
      }),
  });
  if (reply.type !== "unanswered") return reply;
  const failure = toFailure(reply.outcome, timeouts.requestMs);
  // What is not told to stop goes on sampling beside the request that takes its place.
  if (failure.maySample) await context.protocol.abortRequest(worker, piece.requestId);
  if (reply.outcome.type !== "reply" && !turn.signal.aborted) context.workers.markDown(worker);
  const isCutOff = reply.outcome.type === "aborted" && !deadline.expired;
  const problem = isCutOff ? "the turn was over before the answer came" : failure.problem;
  return { type: "failed", failure: { ...failure, problem } };
}

function toFailure(outcome: HttpOutcome, deadlineMs: number): AttemptFailure {
  if (outcome.type !== "reply") return failureOfOutcome(outcome, deadlineMs);
  const failure = failureOfStatus(outcome.status, readErrorMessage(outcome.text));
  const retryAfterMs = readRetryAfterMs(outcome.headers);
  return retryAfterMs === undefined ? failure : { ...failure, retryAfterMs };
}

/**
 * How an interrupted turn ended after all: an engine makes one more step after it was told to abort,
 * and that step may have sampled the stop id or used up the budget.
 */
function finishOfInterrupted({ ids }: SampledPiece, piece: PieceRequest): Finish | undefined {
  return (
    findStop(ids, piece) ?? (ids.length === piece.maxNewTokens ? { type: "length" } : undefined)
  );
}

/** @throws RolloutError `engine/interrupted` where the turn was interrupted too often. */
function resumeDelayMs(
  progress: TurnProgress,
  {
    reply,
    piece,
    worker,
    settings,
  }: {
    reply: { message: string };
    piece: PieceRequest;
    worker: Worker;
    settings: HttpEngineSettings;
  },
): number {
  const { maxResumes, delayMs, maxDelayMs } = settings.resume;
  if (progress.resumeCount === maxResumes) {
    throw new RolloutError(
      "engine/interrupted",
      `Cannot sample request ${piece.requestId} at ${worker.url}: ` +
        `interrupted ${maxResumes + 1} times (${reply.message || "no reason given"}), ` +
        `expected at most ${maxResumes}`,
      { retryable: true, discarded: progress.lost() },
    );
  }
  progress.resumeCount += 1;
  progress.idleResumeCount += 1;
  return Math.min(delayMs * 2 ** Math.min(progress.idleResumeCount - 1, 30), maxDelayMs);
}

/** @throws RolloutError `engine/nan` the second time. */
function countNan(
  progress: TurnProgress,
  {
    piece,
    worker,
    reply,
  }: { piece: PieceRequest; worker: Worker; reply: { readonly tokenCount?: number } },
): void {
  progress.nanCount += 1;
  progress.discard(piece, "NaN happened", reply.tokenCount);
  if (progress.nanCount < 2) return;
  throw new RolloutError(
    "engine/nan",
    `Cannot sample request ${piece.requestId} at ${worker.url}: ` +
      "the engine met NaN twice in one turn, expected finite logits",
    { discarded: progress.lost() },
  );
}

/** @throws RolloutError where it is no use to try again, or was tried often enough. */
function failureDelayMs(
  progress: TurnProgress,
  {
    failure,
    piece,
    worker,
    settings,
  }: { failure: AttemptFailure; piece: PieceRequest; worker: Worker; settings: HttpEngineSettings },
): number {
  const { retry: policy, random } = settings;
  progress.failureCount += 1;
  const { failureCount } = progress;
  if (!failure.retry || failureCount >= policy.maxAttempts) {
    const attempts = failureCount === 1 ? "" : ` (attempt ${failureCount})`;
    throw new RolloutError(
      failure.code,
      `Cannot sample request ${piece.requestId} at ${worker.url}${attempts}: ` +
        `${failure.problem}, expected ${failure.expected}`,
      {
        cause: failure.cause,
        retryable: failure.retry && failure.code !== "engine/timeout",
        discarded: progress.lost(),
      },
    );
  }
  const { retryAfterMs = 0 } = failure;
  return retryDelayMs({ failureCount, policy, random, retryAfterMs });
}

/** Waits, or less where the turn is over before that. */
async function wait(ms: number, turn: Deadline, context: TurnContext): Promise<void> {
  try {
    await context.settings.clock.sleep(ms, { signal: turn.signal });
  } catch (error) {
    if (!turn.signal.aborted) throw error;
  }
}

/** Throws where the turn is cancelled, the engine closed, or the turn's own time over. */
function throwIfOver(
  progress: TurnProgress,
  turn: Deadline,
  { signal, closing, settings }: TurnContext,
): void {
  if (!turn.signal.aborted) return;
  signal?.throwIfAborted();
  if (closing.aborted) {
    throw new RolloutError("engine/unreachable", "Cannot sample: the engine was closed", {
      discarded: progress.lost(),
    });
  }
  throw new RolloutError(
    "engine/timeout",
    `Cannot sample at ${settings.urls.join(", ")}: ` +
      `the turn took longer than ${settings.timeouts.turnMs} ms, expected it to end in time`,
    { discarded: progress.lost() },
  );
}
