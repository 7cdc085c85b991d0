import type { HttpOutcome, HttpRequest } from "./http-transport.ts";
import type { PieceReply, ScoreReply } from "./piece-reply.ts";
import type { PieceRequest, ScorePiece } from "./piece-request.ts";
import type { Worker } from "./worker-set.ts";

/** How one kind of server is asked to sample. */
export interface SamplingProtocol {
  /**
   * Asks for a piece and reads the answer. Does not throw. Where no HTTP 200 came, the outcome is
   * handed back as it is: what it means is the same for all servers.
   */
  samplePiece(piece: PieceRequest, exchange: PieceExchange): Promise<PieceReply | Unanswered>;
  /** Tells the server to stop sampling a request, where it can be told. Bounded, never throws. */
  abortRequest(worker: Worker, requestId: string): Promise<void>;
}

/** How one kind of server is asked to score. Its scores are of the softmax of the raw logits. */
export interface ScoringProtocol {
  /** Asks for scores and reads the answer, as `SamplingProtocol.samplePiece()` does. */
  scoreIds(piece: ScorePiece, exchange: PieceExchange): Promise<ScoreReply | Unanswered>;
}

/** What came instead of a piece. */
export interface Unanswered {
  readonly type: "unanswered";
  readonly outcome: HttpOutcome;
}

/** The way to the server that one piece is asked of. */
export interface PieceExchange {
  readonly worker: Worker;
  /** Aborts at the request's deadline, and when the turn is over. */
  readonly signal: AbortSignal;
  /** Makes one HTTP exchange under that signal. Repeats nothing, does not throw. */
  readonly post: (
    request: Required<Pick<HttpRequest, "path" | "headers" | "body">>,
  ) => Promise<HttpOutcome>;
}

/** A session id as it stands where a header can carry it, percent-encoded otherwise. */
export function toHeaderValue(sessionId: string): string {
  return /^[\x21-\x7e]+$/.test(sessionId) ? sessionId : encodeURIComponent(sessionId);
}
