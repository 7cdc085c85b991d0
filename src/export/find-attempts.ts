import { UsageError } from "../errors.ts";
import { attemptCountsOf } from "../run/schedule/attempt-counts.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { readPlacedLines } from "../run/disk/placed-lines.ts";
import type { PlanRecord } from "../run/schedule/plan-run.ts";
import type { RecordedGrouping } from "../run/folder/episode-events.ts";
import type { SlimeAttempt } from "../run/slime/slime-file.ts";

/** The plan in `run.json` of a run without a fixed list of episodes. */
export interface OpenPlan {
  readonly isOpen: true;
  /** Attempts per group, if the run fixed it. */
  readonly sampleCount?: number;
}

/** A run's attempts by group, and the number of attempts in a complete group. */
interface FoundAttempts {
  readonly attempts: readonly SlimeAttempt[];
  /** The number of attempts in a complete group. Absent if the run did not record it. */
  readonly size?: number;
}

/**
 * Finds a run's attempts: those of its plan, or those of the groups in its folder if the run has no fixed plan. An
 * unfinished attempt gets the name that it will have.
 * @throws UsageError if a file is missing, or if the attempt of a line is not in the plan or occurs twice.
 */
export async function findAttempts(
  plan: PlanRecord | OpenPlan,
  grouping: RecordedGrouping,
  episodesFile: string,
): Promise<FoundAttempts> {
  const lines = await readPlaces(episodesFile);
  return "isOpen" in plan
    ? attemptsThereAre(lines, openCounts(plan, grouping))
    : attemptsPlanned(lines, plan, grouping);
}

/** The fields of a line in `episodes.jsonl` that name the attempt. */
interface EpisodePlace {
  readonly rolloutId: string;
  readonly groupId: string;
  /** The index of the group. Absent in a gateway's runs, which do not number groups. */
  readonly groupIndex?: number;
  readonly taskIndex: number;
  readonly sampleIndex: number;
  /** The line's file and number, for messages. */
  readonly where: string;
}

/** Returns the last line of each rollout, in the order of the file. */
async function readPlaces(episodesFile: string): Promise<readonly EpisodePlace[]> {
  const byId = new Map<string, EpisodePlace>();
  try {
    for await (const { text, place } of readPlacedLines(storedFiles, episodesFile)) {
      const row = parseEpisode(text, `${episodesFile}, line ${place.line}`);
      byId.set(row.rolloutId, row);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new UsageError(`Cannot read ${episodesFile}: no such file, expected a run's folder`);
  }
  return [...byId.values()];
}

function parseEpisode(text: string, where: string): EpisodePlace {
  try {
    const row = JSON.parse(text) as Partial<EpisodePlace> | null;
    if (typeof row?.rolloutId === "string") {
      const { rolloutId, groupId, groupIndex, taskIndex, sampleIndex } = row as EpisodePlace;
      const counted = groupIndex === undefined ? {} : { groupIndex };
      return { rolloutId, groupId, ...counted, taskIndex, sampleIndex, where };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new UsageError(`Cannot read ${where}: it is not an episode; turnwright verify says more`);
}

function attemptsPlanned(
  lines: readonly EpisodePlace[],
  plan: PlanRecord,
  grouping: RecordedGrouping,
): FoundAttempts {
  const { environment, split, taskIndexes, groupId } = plan;
  const { size, started } = attemptCountsOf(grouping, plan);
  const groupOf = new Map(taskIndexes.map((taskIndex, groupIndex) => [taskIndex, groupIndex]));
  const taken = new Map<number, EpisodePlace>();
  for (const line of lines) {
    const { rolloutId, taskIndex, sampleIndex } = line;
    const groupIndex = groupOf.get(taskIndex);
    const isInside = Number.isInteger(sampleIndex) && sampleIndex >= 0 && sampleIndex < started;
    if (groupIndex === undefined || !isInside || (line.groupIndex ?? groupIndex) !== groupIndex) {
      throw misplaced(line, `attempt ${sampleIndex} at task ${taskIndex} is not what was planned`);
    }
    const index = groupIndex * started + sampleIndex;
    const other = taken.get(index);
    if (other !== undefined) {
      throw misplaced(line, `${rolloutId} is in the place of ${other.rolloutId}`);
    }
    taken.set(index, line);
  }
  const attempts = taskIndexes.flatMap((taskIndex, groupIndex) =>
    Array.from({ length: started }, (_, sampleIndex) => {
      const index = groupIndex * started + sampleIndex;
      const name = `${groupId ?? `${environment}/${split}/${taskIndex}`}#${sampleIndex}`;
      return { rolloutId: taken.get(index)?.rolloutId ?? name, groupIndex, index };
    }),
  );
  return { attempts, size };
}

/** Returns the number of attempts in a group, if the run recorded it. */
function openCounts({ sampleCount }: OpenPlan, grouping: RecordedGrouping) {
  const count = grouping.size ?? sampleCount;
  return count === undefined ? undefined : attemptCountsOf(grouping, { sampleCount: count });
}

/**
 * Returns the attempts in the folder. Attempts with one group id form a group. If the run numbered its groups, they are
 * in the order in which they started.
 */
function attemptsThereAre(
  lines: readonly EpisodePlace[],
  counts: { readonly size: number; readonly started: number } | undefined,
): FoundAttempts {
  const groups = groupsIn(lines);
  if (counts === undefined) return { attempts: inTheirOrder(groups) };
  const { size, started } = counts;
  const attempts: SlimeAttempt[] = [];
  for (const { groupId, groupIndex, members } of inPlaces(groups)) {
    const taken = takePlaces(members, started);
    for (let sampleIndex = 0; sampleIndex < started; sampleIndex++) {
      const rolloutId = taken.get(sampleIndex)?.rolloutId ?? `${groupId}#${sampleIndex}`;
      attempts.push({ rolloutId, groupIndex, index: groupIndex * started + sampleIndex });
    }
  }
  return { attempts, size };
}

/** The attempts of a group that are in the folder. */
interface FoundGroup {
  readonly groupId: string;
  readonly members: EpisodePlace[];
  /** The first line of the group that has a group index. Absent if no line has one. */
  counted?: EpisodePlace;
}

/** Returns the groups in the order in which they appear. An attempt without a group index gets that of its group. */
function groupsIn(lines: readonly EpisodePlace[]): readonly FoundGroup[] {
  const groups = new Map<string, FoundGroup>();
  for (const line of lines) {
    const { groupId, groupIndex } = line;
    const group = groups.get(groupId) ?? { groupId, members: [] };
    groups.set(groupId, group);
    group.members.push(line);
    if (groupIndex === undefined) continue;
    group.counted ??= line;
    if (group.counted.groupIndex !== groupIndex) {
      throw misplaced(line, `group ${groupId} has another place at ${group.counted.where}`);
    }
  }
  return [...groups.values()];
}

/**
 * Returns the groups with their indexes in the run. If one group has no index, all groups are numbered in the order in
 * which they appear, because a new index for it could be that of another group.
 */
function inPlaces(
  groups: readonly FoundGroup[],
): readonly (FoundGroup & { readonly groupIndex: number })[] {
  const byPlace = new Map<number, string>();
  for (const { counted, groupId } of groups) {
    if (counted?.groupIndex === undefined) continue;
    const other = byPlace.get(counted.groupIndex);
    if (other !== undefined) throw misplaced(counted, `${groupId} is in the place of ${other}`);
    byPlace.set(counted.groupIndex, groupId);
  }
  const areCounted = byPlace.size === groups.length;
  return groups
    .map((group, place) => {
      const groupIndex = areCounted ? group.counted!.groupIndex! : place;
      return { ...group, groupIndex };
    })
    .toSorted((one, other) => one.groupIndex - other.groupIndex);
}

/** Returns the attempts of a group by their indexes in it. */
function takePlaces(
  group: readonly EpisodePlace[],
  started: number,
): ReadonlyMap<number, EpisodePlace> {
  const taken = new Map<number, EpisodePlace>();
  for (const line of group) {
    const { rolloutId, sampleIndex } = line;
    if (!Number.isInteger(sampleIndex) || sampleIndex < 0 || sampleIndex >= started) {
      throw misplaced(line, `${rolloutId} is attempt ${sampleIndex} of a group of ${started}`);
    }
    const other = taken.get(sampleIndex);
    if (other !== undefined) {
      throw misplaced(line, `${rolloutId} is in the place of ${other.rolloutId}`);
    }
    taken.set(sampleIndex, line);
  }
  return taken;
}

/**
 * Returns all attempts in the order in which they ended, for runs that did not record a group size.
 */
function inTheirOrder(groups: readonly FoundGroup[]): readonly SlimeAttempt[] {
  let index = 0;
  return groups.flatMap(({ members }, groupIndex) =>
    members.map(({ rolloutId }) => ({ rolloutId, groupIndex, index: index++ })),
  );
}

function misplaced({ where }: EpisodePlace, why: string): UsageError {
  return new UsageError(`Cannot export ${where}: ${why}; turnwright verify says more`);
}
