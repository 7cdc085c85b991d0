import type { EpisodeEntry, EpisodeVersions } from "../episode-entry.ts";

/**
 * Adds the versions that sampled each episode, and its staleness: the number of policy versions between the oldest
 * version that sampled the episode and the newest version that had sampled in the run when the episode ended. Both
 * members are absent if no version is known. Keeps the staleness of an entry that has one, because a file may hold only
 * some of a run's episodes. Whole numbers have their own order; other versions are ordered by first appearance.
 */
export function withVersions(
  entries: readonly EpisodeEntry[],
  versions: EpisodeVersions,
): readonly EpisodeEntry[] {
  const ranks = rankVersions(entries, versions);
  if (ranks.size === 0) return entries;
  let newest = 0;
  return entries.map((entry) => {
    const own = versions[entry.rolloutId] ?? [];
    if (own.length === 0) return entry;
    const places = own.map((version) => ranks.get(version)!);
    newest = Math.max(newest, ...places);
    return { staleness: newest - Math.min(...places), ...entry, versions: own };
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
