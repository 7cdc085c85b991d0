import type { FailureCode } from "../../../errors.ts";
import type { Finish } from "../../engine.ts";
import type { CheckedSampling } from "../../in-process/check-request.ts";

/** What a thread is asked for. `key` is unique among the calls under way. */
export type ThreadRequest =
  | GenerateCall
  | ScoreCall
  /** Nobody waits any more. */
  | { readonly type: "abort"; readonly key: number }
  /** Whatever is sampled of a turn is to be answered now. */
  | { readonly type: "cut-short"; readonly key: number }
  /** The weights are others: what was computed by the old ones is of no use. No call is under way. */
  | { readonly type: "forget" };

/** Sample a turn. */
export interface GenerateCall {
  readonly type: "generate";
  readonly key: number;
  readonly promptIds: Int32Array;
  readonly maxNewTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly sampling: CheckedSampling;
  /** Makes the random numbers, together with the seed. */
  readonly sessionId: string;
  /** Whether each token is told of as it is sampled. */
  readonly streams: boolean;
}

/** Score ids that are there. */
export interface ScoreCall {
  readonly type: "score";
  readonly key: number;
  readonly ids: Int32Array;
  /** The first index whose id is scored, at least 1. */
  readonly from: number;
  /** 0 scores as 1 does. */
  readonly temperature: number;
}

/** What a thread says of a call, before it answers it. */
export interface ThreadNews {
  readonly type: "sampled";
  readonly key: number;
  readonly id: number;
  readonly logprob: number;
}

/** What a thread answers. */
export type ThreadReply =
  | {
      readonly type: "generated";
      readonly key: number;
      readonly outputIds: readonly number[];
      readonly logprobs: readonly number[];
      readonly finish: Finish;
      readonly cachedTokenCount: number;
    }
  | { readonly type: "scored"; readonly key: number; readonly logprobs: readonly number[] }
  | {
      readonly type: "failed";
      readonly key: number;
      readonly code: FailureCode;
      readonly message: string;
    };
