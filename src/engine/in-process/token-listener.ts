import { findSampledProblem } from "../check-sampled.ts";
import type { GenerateOptions, GenerateRequest, Generation, StreamedTokens } from "../engine.ts";

/**
 * Tells a caller of tokens as they are sampled. What no sample may carry is not told, nor what comes
 * behind it: the whole turn is then refused where it is checked. What the caller throws is kept until
 * whatever computes has stopped.
 */
export class TokenListener {
  readonly #request: GenerateRequest;
  readonly #onTokens: GenerateOptions["onTokens"];
  #toldCount = 0;
  #isUnsound = false;
  #thrown: { readonly error: unknown } | undefined;

  constructor(request: GenerateRequest, onTokens: GenerateOptions["onTokens"]) {
    this.#request = request;
    this.#onTokens = onTokens;
  }

  /** Whether the caller has thrown, so that sampling on is of no use. */
  get hasThrown(): boolean {
    return this.#thrown !== undefined;
  }

  /** Tells of tokens that follow those that were told. Does not throw. */
  tell(tokens: StreamedTokens): void {
    if (this.#onTokens === undefined || this.hasThrown || this.#isUnsound) return;
    const { tokenIds: ids, logprobs } = tokens;
    const { vocabularySize, maxNewTokens } = this.#request;
    const limits = { vocabularySize, maxNewTokens: maxNewTokens - this.#toldCount };
    this.#isUnsound = findSampledProblem({ ids, logprobs }, limits) !== undefined;
    if (this.#isUnsound || ids.length === 0) return;
    this.#toldCount += ids.length;
    try {
      this.#onTokens(tokens);
    } catch (error) {
      this.#thrown = { error };
    }
  }

  /**
   * Tells of what the whole turn holds beyond what was told.
   *
   * @throws what the caller has thrown.
   */
  complete({ outputIds, logprobs }: Pick<Generation, "outputIds" | "logprobs">): void {
    const { length } = outputIds;
    if (this.#toldCount < length) {
      const tokenIds = outputIds.slice(this.#toldCount);
      this.tell({ tokenIds, logprobs: logprobs.slice(this.#toldCount) });
    }
    if (this.#thrown !== undefined) throw this.#thrown.error;
  }
}
