/** A release of vLLM that a test server can imitate. */
export type VllmRelease = "0.24" | "0.32";

/** The differences between releases that clients can observe. */
export interface ReleaseTraits {
  /**
   * True if the ids-only API has numeric ids, names the stop and the version of the weights, and can abort requests.
   * Otherwise the API writes ids as `token_id:7`, like the completions API.
   */
  readonly hasTokensOutput: boolean;
  /** True if a server without the ids-only API answers its path with HTTP 403. */
  readonly refusesDisabledPaths: boolean;
  /** True if a completion's budget is cut to the free context. Otherwise the request is refused. */
  readonly shortensCompletions: boolean;
}

/**
 * The behaviour of each release. 0.24: from its sources. 0.32: recorded from a running 0.32.0, with
 * and without `--enable-scale-out`.
 */
export const VLLM_RELEASES: Readonly<Record<VllmRelease, ReleaseTraits>> = {
  "0.24": {
    hasTokensOutput: false,
    refusesDisabledPaths: false,
    shortensCompletions: false,
  },
  "0.32": {
    hasTokensOutput: true,
    refusesDisabledPaths: true,
    shortensCompletions: true,
  },
};
