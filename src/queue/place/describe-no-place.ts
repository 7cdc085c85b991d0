import { UsageError } from "../../errors.ts";
import type { EpisodeLimits } from "../../episode/limits.ts";
import { mostInlineBytes } from "../job/payload.ts";

/** Measured sizes in bytes: of a row per token, of a recording per sampled token, and of a turn. */
const [tokenBytes, sampledTokenBytes, turnBytes] = [17, 16, 1_000];

/**
 * Returns a warning if results may be too large for the queue and no shared place is set. Returns
 * `undefined` if all results fit.
 */
export function describeNoPlace(
  shared: string | undefined,
  { maxContextTokens, maxEpisodeTokens, maxTokensPerTurn, maxTurns }: EpisodeLimits,
): string | undefined {
  if (shared !== undefined) return undefined;
  const sampled = Math.min(maxContextTokens, maxEpisodeTokens, maxTurns * maxTokensPerTurn);
  const bytes = maxContextTokens * tokenBytes + sampled * sampledTokenBytes + maxTurns * turnBytes;
  if (bytes <= mostInlineBytes) return undefined;
  return (
    "no --shared is given: a result above 100 kB, which is some 5,000 tokens, would end its run, and the " +
    "attempts of a worker that dies start again from their first turn"
  );
}

/** Returns the error for side columns without a shared folder: their bytes are too large for the queue's store. */
export function noColumnsPlace(shared: string | undefined): UsageError {
  const found = shared === undefined ? "no --shared is given" : `files in ${shared} cannot grow`;
  return new UsageError(
    `Cannot use --columns with a queue: workers write side columns into a shared folder, and ${found}; ` +
      "give the run and its workers the same --shared DIR, a folder that all reach",
  );
}
