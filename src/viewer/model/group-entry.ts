import type { EpisodeEntry } from "./episode-entry.ts";

/** The attempts at one task, as a list of groups shows them. */
export interface GroupEntry {
  readonly groupId: string;
  readonly taskIndex: number;
  /** The attempts by their place in the group. */
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
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const spread = Math.sqrt(
    rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length,
  );
  const isDegenerate = rewards.length > 1 && rewards.every((reward) => reward === rewards[0]);
  return { ...about, mean, spread, isDegenerate };
}
