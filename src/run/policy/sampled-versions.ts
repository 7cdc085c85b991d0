import type { Episode } from "../../episode/episode.ts";
import { readVersion } from "../disk/read-version.ts";

export function newerOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

export function newestOf(episodes: readonly Episode[]): number | undefined {
  const { known } = versionsOf(episodes);
  return known.size === 0 ? undefined : Math.max(...known);
}

/**
 * Returns the newest version at the end of a turn, from a turn index on. The start of an interrupted turn may be of an
 * earlier version.
 */
export function newestSince(turnIndex: number, { segments }: Episode): number | undefined {
  const ends = segments.flatMap(({ turns, policyVersions }) =>
    turns.filter((turn) => turn.turnIndex >= turnIndex).map(({ end }) => policyVersions[end - 1]),
  );
  return ends.map((name = "") => readVersion(name)).reduce(newerOf, undefined);
}

/** The versions that sampled episodes. */
interface SampledVersions {
  readonly known: ReadonlySet<number>;
  /** An engine's name for a version that is not a whole number, of tokens that are trained. */
  readonly unknown: string | undefined;
}

export function versionsOf(episodes: readonly Episode[]): SampledVersions {
  const known = new Set<number>();
  let unknown: string | undefined;
  for (const { lossMask, policyVersions } of episodes.flatMap(({ segments }) => segments)) {
    let last: string | undefined;
    let version: number | undefined;
    for (let index = 0; index < policyVersions.length; index++) {
      const name = policyVersions[index]!;
      // Usually one version sampled a complete turn.
      if (name !== last) {
        version = readVersion(name);
        if (version !== undefined) known.add(version);
      }
      last = name;
      if (version === undefined && lossMask[index] === 1) unknown ??= name;
    }
  }
  return { known, unknown };
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
