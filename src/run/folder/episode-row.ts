import { z } from "zod";
import type { EpisodeCounts, EpisodeStory } from "../../episode/episode.ts";
import { storyShape } from "../../episode/check/story-shape.ts";
import { parseJsonText } from "../../json/parse-json.ts";

export type { EpisodeStory };

/** An episode as `episodes.jsonl` holds it. JSON-able. */
export interface EpisodeRow extends EpisodeStory {
  /**
   * The hashes of its rows in `samples.jsonl`, in their order (see `hashRow()`): as many as it has
   * rows.
   */
  readonly sampleHashes: readonly string[];
}

/** What a run keeps in mind of an episode that an earlier start finished: ids and sums. */
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
  | "split"
> {
  /** Whether its group has a name of its own, which is not its task's id. Default false. */
  readonly hasOwnName?: boolean;
  readonly counts: Omit<EpisodeCounts, "attemptCounts">;
}

/** What a row must have for a run to go on from it. */
const rowSchema = storyShape.extend({
  sampleHashes: z.array(z.string()),
});

/** The episode that a line of `episodes.jsonl` holds; `undefined` where the line is damaged. */
export function parseEpisodeRow(line: Uint8Array): EpisodeRow | undefined {
  const value = parseJson(line);
  return rowSchema.safeParse(value).success ? (value as EpisodeRow) : undefined;
}

/** The value of a line; `undefined` where it is no JSON. */
export function parseJson(line: Uint8Array): unknown {
  return parseJsonText(Buffer.from(line.buffer, line.byteOffset, line.length).toString("utf8"));
}

/**
 * What is kept in mind of a row: one plain literal, as there may be a hundred thousand of them (spread
 * together they took twice the memory).
 *
 * @param rolloutId - The row's; a text that is held elsewhere already need not be held twice.
 */
export function toFinishedEpisode(row: EpisodeRow, rolloutId = row.rolloutId): FinishedEpisode {
  const { split, taskId, taskIndex, groupIndex, sampleIndex, outcome, stopReason } = row;
  const { turnCount, sampledTokenCount, tokenCount, toolCallCount, formatErrorCount } = row.counts;
  const { userUsage, reward, failure, troubles, shared } = row;
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
  };
}
