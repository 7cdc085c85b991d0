import { findSampledProblem } from "../check-sampled.ts";
import type { GenerateOptions, GenerateRequest, Generation, StreamedTokens } from "../engine.ts";

/**
 * Reports tokens to `onTokens` as they are sampled. Reports no token after the first invalid one, because the complete
 * turn is then refused. An error that `onTokens` throws is kept until sampling has stopped.
 */
export class TokenListener {
  readonly #request: GenerateRequest;
  readonly #onTokens: GenerateOptions["onTokens"];
  #reportedCount = 0;
  #isInvalid = false;
  #thrown: { readonly error: unknown } | undefined;

  constructor(request: GenerateRequest, onTokens: GenerateOptions["onTokens"]) {
    this.#request = request;
    this.#onTokens = onTokens;
  }

  /** True if `onTokens` has thrown, so that sampling should stop. */
  get hasThrown(): boolean {
    return this.#thrown !== undefined;
  }

  /** Reports the next tokens. Does not throw. */
  report(tokens: StreamedTokens): void {
    if (this.#onTokens === undefined || this.hasThrown || this.#isInvalid) return;
    const { tokenIds: ids, logprobs } = tokens;
    const { vocabularySize, maxNewTokens } = this.#request;
    const limits = { vocabularySize, maxNewTokens: maxNewTokens - this.#reportedCount };
    this.#isInvalid = findSampledProblem({ ids, logprobs }, limits) !== undefined;
    if (this.#isInvalid || ids.length === 0) return;
    this.#reportedCount += ids.length;
    try {
      this.#onTokens(tokens);
    } catch (error) {
      this.#thrown = { error };
    }
  }

  /**
   * Reports the tokens of a complete turn that were not reported yet.
   *
   * @throws the error that `onTokens` has thrown.
   */
  complete({ outputIds, logprobs }: Pick<Generation, "outputIds" | "logprobs">): void {
    const { length } = outputIds;
    if (this.#reportedCount < length) {
      const tokenIds = outputIds.slice(this.#reportedCount);
      this.report({ tokenIds, logprobs: logprobs.slice(this.#reportedCount) });
    }
    if (this.#thrown !== undefined) throw this.#thrown.error;
  }
}
