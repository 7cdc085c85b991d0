import type { FailureCode } from "../../../errors.ts";
import type { CheckedSampling } from "../../in-process/check-request.ts";
import type { ColumnRequest } from "../../engine.ts";
import type { SampledTurn } from "../../in-process/to-generation.ts";

/** A request to a thread. `key` is unique among pending calls. */
export type ThreadRequest =
  | GenerateCall
  | ScoreCall
  /** Stops a call. The call gets no reply. */
  | { readonly type: "abort"; readonly key: number }
  /** Requests the reply with the tokens sampled so far. */
  | { readonly type: "cut-short"; readonly key: number }
  /** Clears the cache after a change of the weights. Sent only while no call is pending. */
  | { readonly type: "clear-cache" };

/** A request to sample a turn. */
export interface GenerateCall {
  readonly type: "generate";
  readonly key: number;
  readonly promptIds: Int32Array;
  readonly maxNewTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly sampling: CheckedSampling;
  /** The session's id, which determines the random numbers together with the seed. */
  readonly sessionId: string;
  /** The side columns that the reply must have. The engine has checked them. */
  readonly columns?: ColumnRequest;
  /** True if each token is reported when it is sampled. */
  readonly streams: boolean;
}

/** A request to score given ids. */
export interface ScoreCall {
  readonly type: "score";
  readonly key: number;
  readonly ids: Int32Array;
  /** The first index to score, at least 1. */
  readonly from: number;
  /** 0 scores as 1 does. */
  readonly temperature: number;
  /** The number of most probable ids to list for each id. Absent: none are listed. */
  readonly topCount?: number;
}

/** A token that was sampled, reported before the reply. */
export interface TokenMessage {
  readonly type: "sampled";
  readonly key: number;
  readonly id: number;
  readonly logprob: number;
}

/** The reply to a call. */
export type ThreadReply =
  | ({ readonly type: "generated"; readonly key: number } & SampledTurn)
  | {
      readonly type: "scored";
      readonly key: number;
      readonly logprobs: readonly number[];
      /** The most probable ids (see `TopScores`). Absent if none were requested. */
      readonly tops?: Uint8Array;
    }
  | {
      readonly type: "failed";
      readonly key: number;
      readonly code: FailureCode;
      readonly message: string;
    };
