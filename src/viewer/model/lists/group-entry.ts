import type { EpisodeEntry } from "../episode-entry.ts";
import { sortList, type ListField } from "./list-fields.ts";
import { mean } from "../../../values/sum.ts";

/** The attempts at one task, as a list of groups shows them. */
export interface GroupEntry {
  readonly groupId: string;
  readonly taskIndex: number;
  /** The attempts by their index in the group. */
  readonly attempts: readonly EpisodeEntry[];
  readonly scoredCount: number;
  /** The mean reward. Absent if no attempt is scored. */
  readonly mean?: number;
  /** The standard deviation of the rewards. Absent if no attempt is scored. */
  readonly spread?: number;
  /**
   * True if several scored attempts all have the same reward. Their advantages are 0, and training
   * learns nothing from them.
   */
  readonly isDegenerate: boolean;
}

/** The fields of a list of groups. */
export const groupFields: readonly ListField<GroupEntry>[] = [
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
    valueOf: ({ attempts }) => attempts[0]?.taskId,
  },
  {
    name: "about",
    title: "what it is about",
    meaning: "the first words of the user in the first attempt",
    valueOf: ({ attempts }) => attempts[0]?.about,
  },
  {
    name: "mean",
    title: "mean",
    meaning: "the mean reward of the shown attempts",
    valueOf: ({ mean }) => mean,
  },
  {
    name: "spread",
    title: "spread",
    meaning: "the standard deviation of the rewards of the shown attempts",
    valueOf: ({ spread }) => spread,
  },
  {
    name: "attempts",
    title: "rewards of the attempts",
    meaning: "the number of shown attempts",
    valueOf: ({ attempts }) => attempts.length,
  },
];

/** Sorts groups by a field. Groups with equal values keep their order. See `sortList()`. */
export function sortGroups(groups: readonly GroupEntry[], order: string): readonly GroupEntry[] {
  return sortList(groups, order, { fields: groupFields, compareEqual: () => 0 });
}

/** Sorts episodes into their groups, in the order of the tasks. */
export function groupEpisodes(entries: readonly EpisodeEntry[]): readonly GroupEntry[] {
  const groups = new Map<string, EpisodeEntry[]>();
  for (const entry of entries) {
    const group = groups.get(entry.groupId);
    if (group === undefined) groups.set(entry.groupId, [entry]);
    else group.push(entry);
  }
  return [...groups]
    .map(([groupId, attempts]) => toGroup(groupId, attempts))
    .sort((left, right) => left.taskIndex - right.taskIndex);
}

function toGroup(groupId: string, attempts: readonly EpisodeEntry[]): GroupEntry {
  const sorted = attempts.toSorted((left, right) => left.sampleIndex - right.sampleIndex);
  const rewards = sorted.flatMap(({ reward }) => (reward === undefined ? [] : [reward]));
  const about = {
    groupId,
    taskIndex: sorted[0]!.taskIndex,
    attempts: sorted,
    scoredCount: rewards.length,
  };
  if (rewards.length === 0) return { ...about, isDegenerate: false };
  const center = mean(rewards);
  const spread = Math.sqrt(mean(rewards.map((reward) => (reward - center) ** 2)));
  const isDegenerate = rewards.length > 1 && rewards.every((reward) => reward === rewards[0]);
  return { ...about, mean: center, spread, isDegenerate };
}
