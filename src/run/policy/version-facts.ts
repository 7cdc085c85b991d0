import type { Episode } from "../../episode/episode.ts";
import { readVersion } from "../disk/read-version.ts";

/** The policy versions in an episode's rows. JSON-able. */
export interface VersionFacts {
  /** The engine's names of versions, each once. */
  readonly names: readonly string[];
  /** The first name of a trained token that is not a whole number; absent if there is none. */
  readonly unknown?: string;
  /** The name at the end of each turn, in the order of the rows. */
  readonly turnEnds: readonly (readonly [turnIndex: number, name: string])[];
}

/** Finds the policy versions in an episode's rows. */
export function findVersions({ segments }: Pick<Episode, "segments">): VersionFacts {
  const names = new Set<string>();
  const turnEnds: [number, string][] = [];
  let unknown: string | undefined;
  for (const { lossMask, policyVersions, turns } of segments) {
    let last: string | undefined;
    let isKnown = false;
    for (let index = 0; index < policyVersions.length; index++) {
      const name = policyVersions[index]!;
      // Usually one version sampled a complete turn.
      if (name !== last) {
        isKnown = readVersion(name) !== undefined;
        names.add(name);
      }
      last = name;
      if (!isKnown && lossMask[index] === 1) unknown ??= name;
    }
    for (const { turnIndex, end } of turns)
      turnEnds.push([turnIndex, policyVersions[end - 1] ?? ""]);
  }
  return { names: [...names], turnEnds, ...(unknown !== undefined && { unknown }) };
}
