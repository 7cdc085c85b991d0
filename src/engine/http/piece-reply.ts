import type { Finish } from "../engine.ts";
import type { ColumnParts } from "../../columns/column-part.ts";
import type { AttemptFailure } from "./http-failure.ts";
import { PromptCountProblem, ReplyProblem } from "./reply-reading.ts";

/** The sampled tokens of one request. `logprobs[i]` is that of `ids[i]`. */
export interface SampledPiece {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  /** The policy versions that sampled the ids, in order, each with its number of ids. */
  readonly versions: readonly VersionRun[];
  readonly promptTokenCount?: number;
  readonly cachedTokenCount?: number;
  /** Time that the request waited in the engine's queue, in milliseconds. */
  readonly queueMs?: number;
  /**
   * The side columns that the request asked for. Their `policyVersion` is `""`, because `versions` has the versions.
   * Absent if no columns were requested.
   */
  readonly columns?: ColumnParts;
}

/** Consecutive ids that one policy version sampled. */
export interface VersionRun {
  readonly tokenCount: number;
  /** The policy version, or `""` if the engine reports none. */
  readonly policyVersion: string;
}

/** A server's answer to a sampling request. */
export type PieceReply =
  | {
      readonly type: "finished";
      readonly piece: SampledPiece;
      readonly finish: Finish;
      /** Tokens that were sampled after the end of the turn. */
      readonly surplus?: { readonly tokenCount: number; readonly reason: string };
    }
  /** The engine stopped on its own. The tokens that it had sampled are valid. */
  | { readonly type: "interrupted"; readonly piece: SampledPiece; readonly message: string }
  /** The engine met NaN. The sampled tokens cannot be used. */
  | { readonly type: "nan-happened"; readonly tokenCount?: number }
  | FailedReply;

/** A failed request, with the number of tokens that were sampled for it, if known. */
export interface FailedReply {
  readonly type: "failed";
  readonly failure: AttemptFailure;
  readonly tokenCount?: number;
  /**
   * True if the reply counts a different number of prompt tokens than was sent. A reply that lists
   * the prompt's ids may prove the count wrong.
   */
  readonly isMiscounted?: boolean;
}

/** A server's answer to a scoring request. */
export type ScoreReply =
  /**
   * `logprobs[i]` is that of the i-th scored id. `tops` has the form of `TopScores.tops`. It is present if the request
   * asked for the most probable ids.
   */
  | { readonly type: "scored"; readonly logprobs: readonly number[]; readonly tops?: Uint8Array }
  /** The engine stopped on its own. The request can be repeated. */
  | { readonly type: "interrupted"; readonly message: string }
  | FailedReply;

/**
 * Reads an answer. A `ReplyProblem` becomes a failure that is retried: a reply can be damaged on
 * its way, and an engine's step can go wrong.
 */
export async function readPieceReply<Reply extends { readonly type: string }>(
  read: () => Reply | Promise<Reply>,
): Promise<Reply | FailedReply> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ReplyProblem)) throw error;
    return refuseReply(error);
  }
}

/** Returns the failure of an invalid reply. */
export function refuseReply(problem: ReplyProblem, tokenCount?: number): FailedReply {
  const { code, message, expected } = problem;
  const failure = { code, problem: message, expected, retry: true, maySample: true };
  return {
    type: "failed",
    failure,
    ...(tokenCount !== undefined && { tokenCount }),
    ...(problem instanceof PromptCountProblem && { isMiscounted: true }),
  };
}
