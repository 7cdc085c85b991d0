import { takeTurn } from "../async/take-turn.ts";
import { RolloutError } from "../errors.ts";
import { findSampledProblem } from "./check-sampled.ts";
import { findEnd } from "./find-end.ts";
import type { GenerateOptions, GenerateRequest, Generation } from "./engine.ts";
import type { AttemptFailure } from "./http/http-failure.ts";
import type { PieceReply, SampledPiece } from "./http/piece-reply.ts";
import { refuseReply } from "./http/piece-reply.ts";
import type { PieceRequest } from "./http/piece-request.ts";
import { PieceStream } from "./http/piece-stream.ts";
import type { CallContext, CallRequest } from "./http/repeated-call.ts";
import { RepeatedCall } from "./http/repeated-call.ts";
import { ReplyProblem } from "./http/reply-reading.ts";
import type { SamplingProtocol } from "./http/sampling-protocol.ts";
import { TurnProgress } from "./turn-progress.ts";
import { splitByVersion } from "../columns/split-by-version.ts";
import { interruptedAfterStreaming, lostColumns } from "./output-rule.ts";

/** The objects that `sampleTurn()` works with. */
interface TurnContext extends CallContext {
  readonly protocol: SamplingProtocol;
  /** Called with tokens as they arrive. */
  readonly onTokens?: GenerateOptions["onTokens"];
}

/**
 * Samples one turn: retries failed requests, resumes interrupted ones, and starts the turn again if
 * it cannot be resumed.
 *
 * A request that may have been sampled is aborted and recorded before another one replaces it.
 * Streamed ids are kept: a request that breaks after streaming is resumed. The call fails if a
 * later reply contradicts the streamed ids, or if a turn with streamed ids cannot be resumed.
 *
 * @throws RolloutError, or the signal's reason, as `Engine.generate()` says.
 */
export async function requestTurn(
  request: GenerateRequest,
  context: TurnContext,
): Promise<Generation> {
  const { protocol, workers, onTokens } = context;
  const progress = new TurnProgress(request);
  const { rule } = progress;
  const lost = (): ReturnType<TurnProgress["lost"]> => progress.lost();
  /** Throws if ids were streamed and the turn cannot be resumed. */
  const throwIfStuck = ({ requestId, stream }: CallRequest, why: string): void => {
    if (rule === undefined || streamedPart(stream) === undefined) return;
    throw interruptedAfterStreaming(requestId, { rule, why, discarded: progress.lost() });
  };
  /** Throws if ids were streamed without a column that no later request returns. */
  const throwIfLost = (
    { requestId, stream }: Pick<CallRequest, "requestId" | "stream">,
    column: string,
    why: string,
  ): void => {
    if (streamedPart(stream) === undefined) return;
    throw lostColumns(requestId, { column, why, discarded: progress.lost() });
  };
  using call = new RepeatedCall({ verb: "sample", noun: "the turn", lost }, context);
  for (;;) {
    await takeTurn();
    call.throwIfOver();
    if (call.isCutShort) {
      const { lackingColumn: column } = progress;
      if (column === undefined) return progress.toGeneration({ type: "length" });
      const why = "the turn was cut short";
      throw lostColumns(request.requestId, { column, why, discarded: progress.lost() });
    }
    const piece = progress.nextPiece();
    const { maxNewTokens } = piece;
    const stream = onTokens && new PieceStream(piece, onTokens);
    const at = { requestId: piece.requestId, worker: workers.pick(request.sessionId), stream };
    const answer = await call.request(at, (exchange) => protocol.samplePiece(piece, exchange));
    const reply = await assignColumns(completeStream(refuseUnusable(answer, piece), stream), piece);
    switch (reply.type) {
      case "finished":
        progress.add(piece, reply.piece, reply.finish.type);
        if (reply.surplus !== undefined) {
          progress.discard(piece, reply.surplus.reason, reply.surplus.tokenCount);
        }
        return progress.toGeneration(reply.finish);
      case "interrupted": {
        const finish = findEnd(reply.piece.ids, { ...piece.turn, maxNewTokens });
        const lacking = progress.findLacking(reply.piece, { isLast: finish !== undefined });
        if (lacking !== undefined) {
          throwIfLost(at, lacking, reply.message);
          const reason = `it was interrupted, and its column ${lacking} did not arrive`;
          progress.discard(piece, reason, reply.piece.ids.length);
          await call.waitToResume(at, reply.message);
          break;
        }
        progress.add(piece, reply.piece, finish?.type ?? "abort");
        if (reply.piece.ids.length > 0) call.noteProgress();
        if (finish !== undefined) return progress.toGeneration(finish);
        if (call.isCutShort) break;
        throwIfStuck(at, reply.message);
        await call.waitToResume(at, reply.message);
        break;
      }
      case "nan-happened":
        countNan(progress, at, reply.tokenCount);
        break;
      case "failed": {
        const { failure, tokenCount } = reply;
        const streamed = streamedPart(stream);
        const isContradicted = streamed !== undefined && isUnsound(failure);
        if (streamed !== undefined && !isContradicted) {
          const finish = findEnd(streamed.ids, { ...piece.turn, maxNewTokens });
          const lacking = progress.findLacking(streamed, { isLast: finish !== undefined });
          if (lacking !== undefined) throwIfLost(at, lacking, failure.problem);
          progress.add(piece, streamed, finish?.type ?? "abort");
          call.noteProgress();
          if (finish !== undefined) return progress.toGeneration(finish);
        }
        if (failure.maySample) progress.discard(piece, failure.problem, tokenCount);
        call.throwIfOver();
        if (failure.retry && !isContradicted && !call.isCutShort) throwIfStuck(at, failure.problem);
        await call.waitToRetry(at, isContradicted ? { ...failure, retry: false } : failure);
        break;
      }
      default:
        reply satisfies never;
    }
  }
}

/**
 * Streams the rest of a reply. Fails the reply if it does not start with the ids streamed before.
 */
function completeStream(reply: PieceReply, stream: PieceStream | undefined): PieceReply {
  if (stream === undefined) return reply;
  if (reply.type === "nan-happened") {
    return stream.ids.length === 0 ? reply : refuseReply(nanAfterStreaming(), reply.tokenCount);
  }
  if (reply.type === "failed") return reply;
  const { ids, logprobs } = reply.piece;
  try {
    stream.complete(ids, logprobs);
    return reply;
  } catch (error) {
    if (!(error instanceof ReplyProblem)) throw error;
    return refuseReply(error, ids.length);
  }
}

function nanAfterStreaming(): ReplyProblem {
  return new ReplyProblem("NaN happened", "finite logits", "engine/nan");
}

/** Assigns the rows of a reply's columns to the versions of the weights. */
async function assignColumns(
  reply: PieceReply,
  { inputIds, turn }: PieceRequest,
): Promise<PieceReply> {
  if (reply.type !== "finished" && reply.type !== "interrupted") return reply;
  const { piece } = reply;
  if (piece.columns === undefined || turn.columns === undefined) return reply;
  const { specs } = turn.columns;
  const options = { runs: piece.versions, promptLength: inputIds.length, specs };
  return { ...reply, piece: { ...piece, columns: await splitByVersion(piece.columns, options) } };
}

/** Returns the ids that were streamed before a request failed. */
function streamedPart(stream: PieceStream | undefined): SampledPiece | undefined {
  if (stream === undefined || stream.ids.length === 0) return undefined;
  const { ids, logprobs, policyVersion } = stream;
  return { ids, logprobs, versions: [{ tokenCount: ids.length, policyVersion }] };
}

/** True if a reply came and was invalid. False if no reply came. */
function isUnsound({ code }: AttemptFailure): boolean {
  return code === "engine/bad-reply" || code === "engine/nan";
}

/**
 * Refuses an invalid reply before its ids are kept or sent as part of the next prompt. Every reply
 * of every server passes through here, interrupted or not.
 */
function refuseUnusable(reply: PieceReply, { turn, maxNewTokens }: PieceRequest): PieceReply {
  if (reply.type !== "finished" && reply.type !== "interrupted") return reply;
  const { vocabularySize } = turn;
  const { piece } = reply;
  const problem = findSampledProblem(piece, { vocabularySize, maxNewTokens });
  return problem === undefined ? reply : refuseReply(problem, piece.ids.length);
}

/**
 * Counts a reply in which the engine met NaN. The first one is repeated.
 *
 * @throws RolloutError `engine/nan` the second time.
 */
function countNan(
  progress: TurnProgress,
  { requestId, worker }: CallRequest,
  tokenCount: number | undefined,
): void {
  progress.nanCount += 1;
  progress.discard({ requestId }, "NaN happened", tokenCount);
  if (progress.nanCount < 2) return;
  throw new RolloutError(
    "engine/nan",
    `Cannot sample request ${requestId} at ${worker.url}: ` +
      "the engine met NaN twice in one turn, expected finite logits",
    { discarded: progress.lost() },
  );
}
