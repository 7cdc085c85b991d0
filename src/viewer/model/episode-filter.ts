import type { EpisodeEntry } from "./episode-entry.ts";
import { readListFilter, sortList, type ListField, type ListFilter } from "./list-fields.ts";

/** All fields. Filters use their names. */
export const episodeFields: readonly ListField<EpisodeEntry>[] = [
  {
    name: "order",
    title: "ended as",
    meaning: "place in the order in which the episodes ended",
    valueOf: ({ order }) => order,
  },
  {
    name: "task",
    title: "task",
    meaning: "which task was played",
    valueOf: ({ taskIndex }) => taskIndex,
  },
  {
    name: "sample",
    title: "attempt",
    meaning: "which attempt at the task it is",
    valueOf: ({ sampleIndex }) => sampleIndex,
  },
  {
    name: "reward",
    title: "reward",
    meaning: "what it earned; none where nothing scored it",
    valueOf: ({ reward }) => reward,
  },
  {
    name: "outcome",
    title: "outcome",
    meaning: "completed, truncated, failed or aborted",
    valueOf: ({ outcome }) => outcome,
  },
  {
    name: "end",
    title: "ended by",
    meaning: "what ended the conversation",
    valueOf: ({ stopReason }) => stopReason,
  },
  {
    name: "party",
    title: "failure of",
    meaning: "whose failure it was, where it failed",
    valueOf: ({ party }) => party,
  },
  {
    name: "rows",
    title: "rows",
    meaning: "training rows; several after a compaction, a sub-agent or a rewritten history",
    valueOf: ({ rowCount }) => rowCount,
  },
  {
    name: "turns",
    title: "turns",
    meaning: "how often the policy was asked",
    valueOf: ({ turnCount }) => turnCount,
  },
  {
    name: "calls",
    title: "calls",
    meaning: "tool calls that were performed",
    valueOf: ({ toolCallCount }) => toolCallCount,
  },
  {
    name: "malformed",
    title: "malformed",
    meaning: "turns that tried to call a tool and got no call right",
    valueOf: ({ formatErrorCount }) => formatErrorCount,
  },
  {
    name: "sampled",
    title: "sampled",
    meaning: "tokens that the policy sampled: trained",
    valueOf: ({ sampledTokenCount }) => sampledTokenCount,
  },
  {
    name: "tokens",
    title: "tokens",
    meaning: "tokens of its training rows in all",
    valueOf: ({ tokenCount }) => tokenCount,
  },
  {
    name: "versions",
    title: "versions",
    meaning: "the policy's first version that sampled it, which sorts and filters it, and the last",
    valueOf: ({ versions = [] }) => {
      const [first] = versions;
      return first !== undefined && /^\d{1,15}$/.test(first) ? Number(first) : first;
    },
  },
  {
    name: "stale",
    title: "stale",
    meaning: "versions between its oldest token and the newest policy of the run when it ended",
    valueOf: ({ staleness }) => staleness,
  },
  {
    name: "seconds",
    title: "seconds",
    meaning: "how long it took",
    valueOf: ({ durationMs }) => durationMs / 1000,
  },
];

/** Reads a filter of a list of episodes. See `readListFilter()`. */
export function readFilter(text: string): ListFilter<EpisodeEntry> {
  return readListFilter(text, {
    fields: episodeFields,
    textsOf: ({ rolloutId }) => [rolloutId],
  });
}

/** Sorts entries by a field. Entries with equal values are ordered by task. See `sortList()`. */
export function sortEpisodes(
  entries: readonly EpisodeEntry[],
  order: string,
): readonly EpisodeEntry[] {
  return sortList(entries, order, { fields: episodeFields, compareEqual: comparePlaces });
}

function comparePlaces(left: EpisodeEntry, right: EpisodeEntry): number {
  return (
    left.taskIndex - right.taskIndex ||
    left.sampleIndex - right.sampleIndex ||
    left.order - right.order
  );
}
