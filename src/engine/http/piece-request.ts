import type { GenerateRequest } from "../engine.ts";

/** What one HTTP request asks to sample: a turn, or the rest of an interrupted one. */
export interface PieceRequest {
  /** Names it in what is recorded. At the server it has another id: `PieceExchange.wireId`. */
  readonly requestId: string;
  /** The prompt and what earlier pieces of the turn brought. */
  readonly inputIds: readonly number[];
  readonly maxNewTokens: number;
  readonly turn: Pick<
    GenerateRequest,
    "sampling" | "stopTokenIds" | "stopTexts" | "constraint" | "sessionId" | "vocabularySize"
  >;
}

/** What one HTTP request asks to score. */
export interface ScorePiece {
  /** As `PieceRequest.requestId`. */
  readonly requestId: string;
  readonly ids: readonly number[];
  /** The first index that is scored, 1 to the last index. */
  readonly from: number;
  /** Spreads requests over workers. */
  readonly sessionId: string;
}
