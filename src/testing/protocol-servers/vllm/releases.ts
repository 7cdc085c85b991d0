/** A release of vLLM that a test server can imitate. */
export type VllmRelease = "0.24" | "0.32";

/** In what releases differ, as far as clients meet it. */
export interface ReleaseTraits {
  /**
   * True if the ids-only API has numeric ids, names its stop and the version of the weights, and
   * has an abort call. Otherwise its ids are `token_id:7`, as in completions.
   */
  readonly hasTokensOutput: boolean;
  /** True if a server without the ids-only API answers its path with HTTP 403. */
  readonly refusesDisabledPaths: boolean;
  /** True if a completion's budget is cut to the free context. Otherwise the request is refused. */
  readonly shortensCompletions: boolean;
}

/**
 * 0.24: as its sources say. 0.32: as recorded from a running 0.32.0, with and without
 * `--enable-scale-out`.
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
