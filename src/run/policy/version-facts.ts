import type { Episode } from "../../episode/episode.ts";
import { columnsOf, type Segment, type SegmentColumns } from "../../trajectory/segment.ts";
import { readVersion } from "../disk/read-version.ts";

/** The policy versions in an episode's rows. JSON-able. */
export interface VersionFacts {
  /** The engine's names of versions, each once. */
  readonly names: readonly string[];
  /** The first name of a trained token's version that is not a whole number. Absent if all are whole numbers. */
  readonly unknown?: string;
  /** The name at the end of each turn, in the order of the rows. */
  readonly turnEnds: readonly (readonly [turnIndex: number, name: string])[];
}

/** Finds the policy versions in an episode's rows. */
export function findVersions({ segments }: Pick<Episode, "segments">): VersionFacts {
  const names = new Set<string>();
  const turnEnds: [number, string][] = [];
  let unknown: string | undefined;
  for (const segment of segments) {
    const runs = versionRuns(segment);
    for (const { name, isTrained } of runs) {
      names.add(name);
      if (isTrained && readVersion(name) === undefined) unknown ??= name;
    }
    let place = 0;
    for (const { turnIndex, end } of segment.turns) {
      while (place < runs.length && runs[place]!.end < end) place++;
      turnEnds.push([turnIndex, end === 0 ? "" : (runs[place]?.name ?? "")]);
    }
  }
  return { names: [...names], turnEnds, ...(unknown !== undefined && { unknown }) };
}

/** Consecutive ids of one version that are all trained or all masked. */
interface VersionRun {
  readonly name: string;
  readonly isTrained: boolean;
  /** Index after the last id. */
  readonly end: number;
}

/** Returns the runs of a segment, in order and without gaps. */
function versionRuns(segment: Segment): readonly VersionRun[] {
  const columns = columnsOf(segment);
  return columns === undefined ? runsOfLists(segment) : runsOfColumns(columns);
}

function runsOfColumns({ ids, sampled }: SegmentColumns): readonly VersionRun[] {
  const runs: VersionRun[] = [];
  let end = 0;
  const maskedTo = (next: number): void => {
    if (next > end) runs.push({ name: "", isTrained: false, end: next });
  };
  for (const { start, pieces } of sampled) {
    maskedTo(start);
    end = start;
    for (const { tokenCount, policyVersion } of pieces) {
      if (tokenCount === 0) continue;
      end += tokenCount;
      runs.push({ name: policyVersion, isTrained: true, end });
    }
  }
  maskedTo(ids.length);
  return runs;
}

function runsOfLists({ lossMask, policyVersions }: Segment): readonly VersionRun[] {
  const runs: VersionRun[] = [];
  for (let end = 1; end <= policyVersions.length; end++) {
    const name = policyVersions[end - 1]!;
    const bit = lossMask[end - 1];
    if (policyVersions[end] === name && lossMask[end] === bit && end < policyVersions.length)
      continue;
    runs.push({ name, isTrained: bit === 1, end });
  }
  return runs;
}
