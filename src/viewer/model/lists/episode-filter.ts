import { isSuccessful } from "../../../report/trial-result.ts";
import type { EpisodeEntry } from "../episode-entry.ts";
import { componentTitle } from "./run-figures.ts";
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
    meaning: "the number of the task",
    valueOf: ({ taskIndex }) => taskIndex,
  },
  {
    name: "name",
    title: "name",
    meaning: "the name of the task, which the client of a gateway chooses",
    valueOf: ({ taskId }) => taskId,
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
    name: "success",
    title: "success",
    meaning: "yes or no; none where nothing scored it",
    valueOf: (entry) =>
      entry.reward === undefined ? undefined : isSuccessful(entry) ? "yes" : "no",
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
    name: "about",
    title: "what it is about",
    meaning: "the first words of the user",
    valueOf: ({ about }) => about,
  },
  {
    name: "why",
    title: "why it ended so",
    meaning: "the first reason of the score; without one, what ended the conversation",
    valueOf: whyText,
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

/**
 * Describes the reasons for an episode's end and reward: the limit or the failure, and the first reason of its score.
 */
export function whyText({ outcome, stopReason, failureCode, reason }: EpisodeEntry): string {
  if (outcome === "failed") return [failureCode ?? "failed", reason].filter(isGiven).join(": ");
  const cut = outcome === "truncated" ? `cut off: ${stopReason}` : undefined;
  const parts = [cut, reason].filter(isGiven);
  return parts.length === 0 ? stopReason : parts.join(" · ");
}

function isGiven(part: string | undefined): part is string {
  return part !== undefined;
}

/**
 * Returns the fields of a list of episodes: all of `episodeFields`, the components of the rewards as `reward.NAME`,
 * and the hits of a search.
 *
 * @param hits - The number of hits by episode. Absent without a search.
 */
export function listFields(
  components: readonly string[],
  hits?: ReadonlyMap<string, number>,
): readonly ListField<EpisodeEntry>[] {
  const titles = episodeFields.map(({ title }) => title);
  return [
    ...episodeFields,
    ...components.map((name) => ({
      name: `reward.${name}`,
      title: componentTitle(name, titles),
      meaning: `the component ${name} of the reward, without its weight`,
      valueOf: ({ components: own }: EpisodeEntry) => own?.[name],
    })),
    ...(hits === undefined
      ? []
      : [
          {
            name: "hits",
            title: "hits",
            meaning: "how often the search found the text in the conversation",
            valueOf: ({ rolloutId }: EpisodeEntry) => hits.get(rolloutId) ?? 0,
          },
        ]),
  ];
}

/** Reads a filter of a list of episodes. See `readListFilter()`. */
export function readFilter(
  text: string,
  fields: readonly ListField<EpisodeEntry>[] = episodeFields,
): ListFilter<EpisodeEntry> {
  return readListFilter(text, {
    fields,
    textsOf: (entry) => [entry.rolloutId, entry.about, whyText(entry)],
  });
}

/** Sorts entries by a field. Entries with equal values are ordered by task. See `sortList()`. */
export function sortEpisodes(
  entries: readonly EpisodeEntry[],
  order: string,
  fields: readonly ListField<EpisodeEntry>[] = episodeFields,
): readonly EpisodeEntry[] {
  return sortList(entries, order, { fields, compareEqual: comparePlaces });
}

/** True if tasks have names that their numbers do not show, as a gateway's sessions have. */
export function haveNames(entries: readonly EpisodeEntry[]): boolean {
  return entries.some(({ taskId, taskIndex }) => !taskId.endsWith(`/${taskIndex}`));
}

function comparePlaces(left: EpisodeEntry, right: EpisodeEntry): number {
  return (
    left.taskIndex - right.taskIndex ||
    left.sampleIndex - right.sampleIndex ||
    left.order - right.order
  );
}
