/** A release of vLLM whose behaviour a test server can have. */
export type VllmRelease = "0.24" | "0.32";

/** In what releases differ, as far as clients meet it. */
export interface ReleaseTraits {
  /**
   * Whether the ids-only API names ids by number, says what it stopped on and which version of the
   * weights sampled what, and can be told to abort. Otherwise ids are `token_id:7`, as in completions.
   */
  readonly hasTokensOutput: boolean;
  /** Whether the ids-only API, where the server was started without it, says so with HTTP 403. */
  readonly refusesDisabledPaths: boolean;
  /** Whether a completion's budget is cut to the room in the context, instead of being refused. */
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
