import type { HttpOutcome, HttpRequest } from "./http-transport.ts";
import type { PieceReply, ScoreReply } from "./piece-reply.ts";
import type { PieceRequest, ScorePiece } from "./piece-request.ts";
import type { PieceStream } from "./piece-stream.ts";
import type { Worker } from "./worker-set.ts";

/** The sampling requests of one kind of server. */
export interface SamplingProtocol {
  /**
   * Requests a piece and reads the answer. Returns the outcome itself if the status is not 200,
   * because its meaning is the same for all servers.
   *
   * @throws only errors that the caller's `onTokens` throws.
   */
  samplePiece(piece: PieceRequest, exchange: PieceExchange): Promise<PieceReply | Unanswered>;
  /**
   * Makes the server stop sampling the request with this wire id. Bounded in time, never throws. Returns true if the
   * server accepts the abort, or does not answer in time. Returns false if the server has no abort, or refuses it.
   */
  abortRequest(worker: Worker, wireId: string): Promise<boolean>;
  /**
   * Makes the server answer a pending request with the tokens it has sampled so far. Bounded in
   * time, and returns as `abortRequest()` does, which is the default.
   */
  cutShort?(worker: Worker, wireId: string): Promise<boolean>;
}

/** The scoring requests of one kind of server. The scores use the softmax of the raw logits. */
export interface ScoringProtocol {
  /** Requests scores and reads the answer, as `SamplingProtocol.samplePiece()` does. */
  scoreIds(piece: ScorePiece, exchange: PieceExchange): Promise<ScoreReply | Unanswered>;
}

/** An outcome without an answer of status 200. */
export interface Unanswered {
  readonly type: "unanswered";
  readonly outcome: HttpOutcome;
}

/** The connection and settings for one request. */
export interface PieceExchange {
  readonly worker: Worker;
  /**
   * The request's id at the server. No other request there has it, or has an id that starts with
   * it.
   */
  readonly wireId: string;
  /** Aborts at the request's deadline, and when the turn is over. */
  readonly signal: AbortSignal;
  /**
   * Receives the answer as a stream, if the server supports streaming. Absent: the answer is not
   * streamed.
   */
  readonly stream?: PieceStream | undefined;
  /**
   * Makes one HTTP exchange under `signal`. Repeats nothing.
   *
   * @throws only errors that `onEvent` and the cutter's readers throw.
   */
  readonly post: (
    request: Required<Pick<HttpRequest, "path" | "headers" | "body">> &
      Pick<HttpRequest, "onEvent" | "cutter">,
  ) => Promise<HttpOutcome>;
}

/** Returns the session id, percent-encoded if a header cannot contain it. */
export function toHeaderValue(sessionId: string): string {
  return /^[\x21-\x7e]+$/.test(sessionId) ? sessionId : encodeURIComponent(sessionId);
}
