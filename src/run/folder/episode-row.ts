import { z } from "zod";
import type { Episode, EpisodeCounts, EpisodeStory } from "../../episode/episode.ts";
import { storyShape } from "../../episode/check/story-shape.ts";
import type { RowLineage } from "../../episode/row-lineage.ts";
import { rowLineageOf } from "../../episode/row-lineage-of.ts";
import { restoreStory, type StoredStory } from "../../episode/stored-story.ts";
import { parseJsonText } from "../../json/parse-json.ts";

export type { EpisodeStory };

/** An episode of `episodes.jsonl`. Its line is a `StoredEpisodeRow`. JSON-able. */
export interface EpisodeRow extends EpisodeStory {
  /** The hashes of its rows in `samples.jsonl`, in order (see `hashRow()`). */
  readonly sampleHashes: readonly string[];
  /**
   * The lineage of its rows, one entry for each row: `null` for rows without a trained token. Absent if
   * at most one row has trained tokens.
   */
  readonly lineage?: readonly (RowLineage | null)[];
}

/** An episode as a line of `episodes.jsonl`. JSON-able. */
export type StoredEpisodeRow = StoredStory<EpisodeRow>;

/** The ids and counts of an episode that an earlier start finished. */
export interface FinishedEpisode extends Pick<
  EpisodeRow,
  | "rolloutId"
  | "taskIndex"
  | "groupIndex"
  | "sampleIndex"
  | "outcome"
  | "stopReason"
  | "reward"
  | "failure"
  | "troubles"
  | "userUsage"
  | "shared"
  | "gateway"
  | "split"
> {
  /** True if the episode's group has its own id instead of its task's id. Default false. */
  readonly hasOwnName?: boolean;
  readonly counts: Omit<EpisodeCounts, "attemptCounts">;
}

/** Returns the members of an episode's line that are not part of its story. */
export function rowMembers(
  episode: Pick<Episode, "segments" | "tree">,
  sampleHashes: readonly string[],
): Pick<EpisodeRow, "sampleHashes" | "lineage"> {
  const lineage = rowLineageOf(episode).map((own) => own ?? null);
  return { sampleHashes, ...(lineage.some((own) => own !== null) && { lineage }) };
}

/** The members that resuming a run needs. */
const rowSchema = storyShape.extend({
  sampleHashes: z.array(z.string()),
});

/** Parses a line of `episodes.jsonl` as it is; returns `undefined` if it is damaged. */
export function parseStoredRow(line: Uint8Array): StoredEpisodeRow | undefined {
  const value = parseJson(line);
  return rowSchema.safeParse(value).success ? (value as StoredEpisodeRow) : undefined;
}

/** Reads the episode in a line of `episodes.jsonl`; returns `undefined` if it is damaged. */
export function parseEpisodeRow(line: Uint8Array): EpisodeRow | undefined {
  const row = parseStoredRow(line);
  return row && (restoreStory(row) as EpisodeRow);
}

/** Parses the JSON of a line; returns `undefined` if it is not JSON. */
export function parseJson(line: Uint8Array): unknown {
  return parseJsonText(Buffer.from(line.buffer, line.byteOffset, line.length).toString("utf8"));
}

/**
 * Picks the members of a row that stay in memory. There may be 100,000 rows, and a literal takes half the memory of an
 * object made by spreading.
 *
 * @param rolloutId - The row's id. Pass a string that is in memory already, to share it.
 */
export function toFinishedEpisode(
  row: Omit<EpisodeRow, "turns">,
  rolloutId = row.rolloutId,
): FinishedEpisode {
  const { split, taskId, taskIndex, groupIndex, sampleIndex, outcome, stopReason } = row;
  const { turnCount, sampledTokenCount, tokenCount, toolCallCount, formatErrorCount } = row.counts;
  const { userUsage, reward, failure, troubles, shared, gateway } = row;
  return {
    rolloutId,
    hasOwnName: rolloutId !== `${taskId}#${sampleIndex}`,
    split,
    taskIndex,
    sampleIndex,
    outcome,
    stopReason,
    counts: { turnCount, sampledTokenCount, tokenCount, toolCallCount, formatErrorCount },
    userUsage,
    ...(groupIndex !== undefined && { groupIndex }),
    ...(reward !== undefined && { reward }),
    ...(failure !== undefined && { failure }),
    ...(troubles !== undefined && { troubles }),
    ...(shared !== undefined && { shared }),
    ...(gateway !== undefined && { gateway }),
  };
}
