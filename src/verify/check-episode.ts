import { checkStory } from "../episode/check/check-story.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { checkLineage } from "./check-lineage.ts";
import { quote, type RawRow, type Violation } from "../trajectory/violation.ts";

/**
 * Checks the line of one episode without other files: its content, and that it has the hashes and
 * the lineage of its training rows.
 */
export function checkEpisode(row: RawRow): {
  readonly found: readonly Violation[];
  readonly episode: EpisodeRow | undefined;
} {
  const { found, story } = checkStory(row);
  const episode = story as (RawRow & EpisodeRow) | undefined;
  return { found: [...found, ...checkSampleHashes(row), ...checkLineage(row)], episode };
}

function checkSampleHashes({ sampleHashes }: RawRow): Violation[] {
  const isList = Array.isArray(sampleHashes);
  if (
    isList &&
    sampleHashes.every((hash) => typeof hash === "string" && /^[0-9a-f]{64}$/.test(hash))
  )
    return [];
  const detail = `sampleHashes is ${quote(sampleHashes)}, expected the hashes of the rows of samples`;
  return [{ rule: "hashes", detail }];
}
