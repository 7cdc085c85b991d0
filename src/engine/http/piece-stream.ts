import { findSampledProblem } from "../check-sampled.ts";
import type { StreamedTokens } from "../engine.ts";
import type { PieceRequest } from "./piece-request.ts";
import { ReplyProblem } from "./reply-reading.ts";

/**
 * What a request has brought so far and the caller was told of. It guards that nothing is told that no
 * sample may carry, and that the whole reply is what was told.
 */
export class PieceStream {
  readonly #piece: PieceRequest;
  readonly #onTokens: (tokens: StreamedTokens) => void;
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  /** The policy's version as the server named it last; `""` where it names none. */
  policyVersion = "";

  constructor(piece: PieceRequest, onTokens: (tokens: StreamedTokens) => void) {
    this.#piece = piece;
    this.#onTokens = onTokens;
  }

  get ids(): readonly number[] {
    return this.#ids;
  }

  /** `logprobs[i]` belongs to `ids[i]`. */
  get logprobs(): readonly number[] {
    return this.#logprobs;
  }

  /**
   * Tells of tokens that have come.
   *
   * @throws ReplyProblem where they cannot be what was sampled; nothing is told of them then.
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
   * Tells of what a reply holds beyond what was told.
   *
   * @throws ReplyProblem where the reply does not begin with what was told.
   */
  complete(ids: readonly number[], logprobs: readonly number[]): void {
    const told = this.#ids.length;
    const index = this.#ids.findIndex(
      (id, place) => id !== ids[place] || this.#logprobs[place] !== logprobs[place],
    );
    if (index >= 0) {
      throw new ReplyProblem(
        `the reply differs at token ${index} from what was streamed`,
        "the same tokens and logprobs",
      );
    }
    this.append(ids.slice(told), logprobs.slice(told));
  }
}
