import type { EpisodeEntry, EpisodeVersions } from "./episode-entry.ts";

/**
 * Notes with each episode how stale it is: by how many of the policy's versions the oldest that sampled it
 * is behind the newest that had sampled anything in the run when the episode ended. Absent where no version
 * is known; what an entry says already stays, for a file may hold some of a run's episodes only. Versions
 * that are whole numbers are in their order, others in that in which they appear.
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
