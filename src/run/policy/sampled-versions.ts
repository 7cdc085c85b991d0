import type { Episode } from "../../episode/episode.ts";
import { readVersion } from "../disk/read-version.ts";
import { packedOf } from "../packed/packed-episode.ts";
import { findVersions, type VersionFacts } from "./version-facts.ts";

export function newerOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

export function newestOf(episodes: readonly Episode[]): number | undefined {
  const { known } = versionsOf(episodes);
  return known.size === 0 ? undefined : Math.max(...known);
}

/**
 * Returns the newest version at the end of the turns from a turn index on. The start of an interrupted turn may have an
 * earlier version.
 */
export function newestSince(turnIndex: number, episode: Episode): number | undefined {
  const { turnEnds } = factsOf(episode);
  return turnEnds
    .filter(([index]) => index >= turnIndex)
    .map(([, name]) => readVersion(name))
    .reduce(newerOf, undefined);
}

/** The versions that sampled episodes. */
interface SampledVersions {
  readonly known: ReadonlySet<number>;
  /** A version of trained tokens that is not a whole number, as the engine names it. */
  readonly unknown: string | undefined;
}

export function versionsOf(episodes: readonly Episode[]): SampledVersions {
  const known = new Set<number>();
  let firstUnknown: string | undefined;
  for (const episode of episodes) {
    const { names, unknown } = factsOf(episode);
    for (const name of names) {
      const version = readVersion(name);
      if (version !== undefined) known.add(version);
    }
    firstUnknown ??= unknown;
  }
  return { known, unknown: firstUnknown };
}

/** Returns the versions of an episode. For a packed episode, its player has found them. */
function factsOf(episode: Episode): VersionFacts {
  return packedOf(episode)?.versions ?? findVersions(episode);
}

/** Removes tokens of older or unknown versions from the loss. */
export function maskBefore(episode: Episode, oldest: number): Episode {
  const isOld = new Map<string, boolean>();
  const segments = episode.segments.map((segment) => ({
    ...segment,
    lossMask: segment.lossMask.map((bit, index) => {
      const name = segment.policyVersions[index]!;
      if (!isOld.has(name)) isOld.set(name, (readVersion(name) ?? -Infinity) < oldest);
      return isOld.get(name) === true ? 0 : bit;
    }),
  }));
  return { ...episode, segments };
}
