import { findSampledProblem } from "../check-sampled.ts";
import type { StreamedTokens } from "../engine.ts";
import type { PieceRequest } from "./piece-request.ts";
import { ReplyProblem } from "./reply-reading.ts";

/**
 * The tokens of a request that were streamed to the caller. Streams only tokens that a sample may contain, and checks
 * that the complete reply starts with the streamed tokens.
 */
export class PieceStream {
  readonly #piece: PieceRequest;
  readonly #onTokens: (tokens: StreamedTokens) => void;
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  /** The policy version that the server named last, or `""`. */
  policyVersion = "";

  constructor(piece: PieceRequest, onTokens: (tokens: StreamedTokens) => void) {
    this.#piece = piece;
    this.#onTokens = onTokens;
  }

  get ids(): readonly number[] {
    return this.#ids;
  }

  /** `logprobs[i]` is that of `ids[i]`. */
  get logprobs(): readonly number[] {
    return this.#logprobs;
  }

  /**
   * Streams tokens that have arrived.
   *
   * @throws ReplyProblem if they cannot be sampled tokens. Such tokens are not streamed.
   */
  append(tokenIds: readonly number[], logprobs: readonly number[]): void {
    const { turn, maxNewTokens } = this.#piece;
    const limits = {
      vocabularySize: turn.vocabularySize,
      maxNewTokens: maxNewTokens - this.#ids.length,
    };
    const problem = findSampledProblem({ ids: tokenIds, logprobs }, limits);
    if (problem !== undefined) throw problem;
    if (tokenIds.length === 0) return;
    for (const id of tokenIds) this.#ids.push(id);
    for (const logprob of logprobs) this.#logprobs.push(logprob);
    this.#onTokens({ tokenIds, logprobs });
  }

  /**
   * Streams the part of a reply that was not streamed yet.
   *
   * @throws ReplyProblem if the reply does not start with the streamed tokens.
   */
  complete(ids: readonly number[], logprobs: readonly number[]): void {
    const streamedCount = this.#ids.length;
    const index = this.#ids.findIndex(
      (id, place) => id !== ids[place] || this.#logprobs[place] !== logprobs[place],
    );
    if (index >= 0) {
      throw new ReplyProblem(
        `the reply differs at token ${index} from what was streamed`,
        "the same tokens and logprobs",
      );
    }
    this.append(ids.slice(streamedCount), logprobs.slice(streamedCount));
  }
}
