import type { EpisodeEntry, EpisodeVersions } from "./episode-entry.ts";

/**
 * Adds each episode's staleness: the number of policy versions between the oldest one that sampled
 * it and the newest one that had sampled in the run when it ended. Absent if no version is known.
 * Keeps the value of an entry that has one, because a file may hold only some of a run's episodes.
 * Whole numbers have their own order; other versions are ordered by first appearance.
 */
export function withStaleness(
  entries: readonly EpisodeEntry[],
  versions: EpisodeVersions,
): readonly EpisodeEntry[] {
  const ranks = rankVersions(entries, versions);
  if (ranks.size === 0) return entries;
  let newest = 0;
  return entries.map((entry) => {
    const own = (versions[entry.rolloutId] ?? []).map((version) => ranks.get(version)!);
    if (own.length === 0) return entry;
    newest = Math.max(newest, ...own);
    return { staleness: newest - Math.min(...own), ...entry };
  });
}

function rankVersions(
  entries: readonly EpisodeEntry[],
  versions: EpisodeVersions,
): ReadonlyMap<string, number> {
  const known = [...new Set(entries.flatMap(({ rolloutId }) => versions[rolloutId] ?? []))];
  const isCounted = known.every((version) => /^\d{1,15}$/.test(version));
  return new Map(known.map((version, place) => [version, isCounted ? Number(version) : place]));
}
