import type { GenerateRequest } from "../engine.ts";
import type { TokenIds } from "../token-id.ts";

/** One HTTP request to sample: a turn, or the rest of an interrupted turn. */
export interface PieceRequest {
  /** The request's name in records. The server receives another id, `PieceExchange.wireId`. */
  readonly requestId: string;
  /** The prompt and the ids of the turn's earlier pieces. */
  readonly inputIds: TokenIds;
  readonly maxNewTokens: number;
  readonly turn: Pick<
    GenerateRequest,
    "sampling" | "stopTokenIds" | "constraint" | "columns" | "sessionId" | "vocabularySize"
  >;
}

/** One HTTP request to score. */
export interface ScorePiece {
  /** The request's name in records, as in `PieceRequest`. */
  readonly requestId: string;
  readonly ids: readonly number[];
  /** The first index to score, 1 to the last index. */
  readonly from: number;
  /** The number of most probable ids to list for each id. Absent: none are listed. */
  readonly topCount?: number;
  /** The session's id, by which requests are spread over workers. */
  readonly sessionId: string;
}
