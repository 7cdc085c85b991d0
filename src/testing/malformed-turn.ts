/** A turn as an engine reports it. `logprobs[i]` is that of `outputIds[i]`. */
export interface ReportedTurn {
  readonly outputIds: readonly number[];
  readonly logprobs: readonly number[];
}

/** An invalid report about a token: another id, another logprob, or no logprob. */
export type MalformedToken =
  | { readonly id: number }
  | { readonly logprob: number | null }
  | { readonly logprob: "missing" };

/** The index of the malformed token in a turn. */
const MALFORMED_INDEX = 1;

/** Returns ids that are not in a vocabulary of `vocabularySize`. */
export function foreignIds(vocabularySize: number): readonly number[] {
  return [vocabularySize, 2 ** 31, 2 ** 53, -1, 10.5];
}

/** Values that cannot be the logprob of a sampled token. */
export const IMPOSSIBLE_LOGPROBS = [-1e308, -10_001, 0.1, Number.NaN, null, "missing"] as const;

/** Returns a turn in which one token is malformed, as an engine in this process would return it. */
export function malformTurn(
  { outputIds, logprobs }: ReportedTurn,
  token: MalformedToken,
): ReportedTurn {
  if ("id" in token) return { outputIds: outputIds.with(MALFORMED_INDEX, token.id), logprobs };
  const { logprob } = token;
  return {
    outputIds,
    logprobs:
      logprob === "missing"
        ? logprobs.toSpliced(MALFORMED_INDEX, 1)
        : logprobs.with(MALFORMED_INDEX, logprob as number),
  };
}
