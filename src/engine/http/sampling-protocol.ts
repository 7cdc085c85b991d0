import type { HttpOutcome, HttpRequest } from "./http-transport.ts";
import type { PieceReply, ScoreReply } from "./piece-reply.ts";
import type { PieceRequest, ScorePiece } from "./piece-request.ts";
import type { PieceStream } from "./piece-stream.ts";
import type { Worker } from "./worker-set.ts";

/** How one kind of server is asked to sample. */
export interface SamplingProtocol {
  /**
   * Asks for a piece and reads the answer. Throws only what the caller's `onTokens` throws. Where no HTTP 200 came, the outcome is
   * handed back as it is: what it means is the same for all servers.
   */
  samplePiece(piece: PieceRequest, exchange: PieceExchange): Promise<PieceReply | Unanswered>;
  /**
   * Tells the server to stop sampling a request, by the id under which it went there. Bounded, never throws. False
   * where the server cannot be told: it has no way to, or refuses. One that does not answer in time may have been.
   */
  abortRequest(worker: Worker, wireId: string): Promise<boolean>;
  /**
   * Has the server answer a request, whose answer is waited for, with what it has sampled. Bounded and false as
   * above. Default: `abortRequest()`.
   */
  cutShort?(worker: Worker, wireId: string): Promise<boolean>;
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
  /** The id under which the request goes to the server: no other request there has it, or begins with it. */
  readonly wireId: string;
  /** Aborts at the request's deadline, and when the turn is over. */
  readonly signal: AbortSignal;
  /** Where given, the answer is to be streamed into it, as far as the server can. */
  readonly stream?: PieceStream | undefined;
  /**
   * Makes one HTTP exchange under that signal. Repeats nothing.
   *
   * @throws what `onEvent` throws, and nothing else.
   */
  readonly post: (
    request: Required<Pick<HttpRequest, "path" | "headers" | "body">> &
      Pick<HttpRequest, "onEvent">,
  ) => Promise<HttpOutcome>;
}

/** A session id as it stands where a header can carry it, percent-encoded otherwise. */
export function toHeaderValue(sessionId: string): string {
  return /^[\x21-\x7e]+$/.test(sessionId) ? sessionId : encodeURIComponent(sessionId);
}
