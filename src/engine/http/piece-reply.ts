import type { Finish } from "../engine.ts";
import type { AttemptFailure } from "./http-failure.ts";
import { PromptCountProblem, ReplyProblem } from "./reply-reading.ts";

/** What a piece brought. `logprobs[i]` belongs to `ids[i]`. */
export interface SampledPiece {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  /** Which version of the policy sampled how many of the ids, in order. */
  readonly versions: readonly VersionRun[];
  readonly promptTokenCount?: number;
  readonly cachedTokenCount?: number;
  /** How long the request waited until the engine took it up, in milliseconds. */
  readonly queueMs?: number;
}

/** Ids in a row that one version sampled. */
export interface VersionRun {
  readonly tokenCount: number;
  /** `""` where the engine reports none. */
  readonly policyVersion: string;
}

/** What a server's answer to a request for a piece says. */
export type PieceReply =
  | {
      readonly type: "finished";
      readonly piece: SampledPiece;
      readonly finish: Finish;
      /** Tokens that were sampled behind the end of the turn. */
      readonly surplus?: { readonly tokenCount: number; readonly reason: string };
    }
  /** The engine stopped sampling on its own account; what it had sampled is valid. */
  | { readonly type: "interrupted"; readonly piece: SampledPiece; readonly message: string }
  /** The engine met NaN, and what it sampled cannot be used. */
  | { readonly type: "nan-happened"; readonly tokenCount?: number }
  | FailedReply;

/** A request that failed, with how many tokens were sampled for it where that is known. */
export interface FailedReply {
  readonly type: "failed";
  readonly failure: AttemptFailure;
  readonly tokenCount?: number;
  /** Whether the reply counts another prompt than was sent: one that lists the prompt may prove it. */
  readonly isMiscounted?: boolean;
}

/** What a server's answer to a request for scores says. */
export type ScoreReply =
  /** `logprobs[i]` belongs to the i-th id that is scored. */
  | { readonly type: "scored"; readonly logprobs: readonly number[] }
  /** The engine gave up on its own account, and would score again. */
  | { readonly type: "interrupted"; readonly message: string }
  | FailedReply;

/**
 * Reads an answer. What it finds wrong, thrown as a `ReplyProblem`, becomes a failure that is tried
 * again: a reply can be damaged on its way, and a step of an engine can go wrong.
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

/** The failure that a reply is of which something cannot be. */
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
