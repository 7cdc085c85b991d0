import { UsageError } from "../errors.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { findBranches } from "./find-branches.ts";
import type { StoredRun } from "./read-run.ts";

/** The place of a finished attempt among the attempts at its task. */
interface TrialPlace {
  /** 0-based number. No two attempts at a task have the same one. */
  readonly trial: number;
  /**
   * Set if the attempt branches from another attempt of the run, so that it is not a trial (see
   * `findBranches()`).
   */
  readonly isBranch?: true;
  /** Set if the attempt has several rows with trained tokens. */
  readonly hasSeveralRows?: true;
}

/** The places of a run's finished attempts, by rollout id. A later attempt may change them. */
export type TrialNumbers = ReadonlyMap<string, TrialPlace>;

/** A finished episode with its place among all attempts at its task. */
export interface NumberedEpisode extends TrialPlace {
  readonly row: EpisodeRow;
}

type Attempt = Pick<
  EpisodeRow,
  "rolloutId" | "taskId" | "groupId" | "groupIndex" | "sampleIndex" | "forkedFrom"
> &
  Pick<TrialPlace, "hasSeveralRows">;

/**
 * Numbers a run's attempts per task, from 0 without gaps. A task with one group uses the places in
 * that group; a task with several groups uses groups and places. Keeps only ids and numbers in
 * memory.
 * @throws UsageError if an attempt occurs twice.
 */
export async function numberTrials(
  run: Pick<StoredRun, "dir" | "rows" | "manifest">,
): Promise<TrialNumbers> {
  const attempts: Attempt[] = [];
  for await (const row of run.rows()) {
    const { rolloutId, taskId, groupId, groupIndex, sampleIndex, forkedFrom, lineage } = row;
    attempts.push({
      rolloutId,
      taskId,
      groupId,
      sampleIndex,
      ...(groupIndex !== undefined && { groupIndex }),
      ...(forkedFrom !== undefined && { forkedFrom }),
      ...(lineage !== undefined && { hasSeveralRows: true }),
    });
  }
  const branches = findBranches(attempts);
  const trials = new Map<string, TrialPlace>();
  for (const [taskId, groups] of groupsByTask(attempts)) {
    let count = 0;
    for (const [key, members] of groups) {
      refuseTwice(members, `group ${key} at ${taskId}`, run.dir);
      for (const { rolloutId, sampleIndex, hasSeveralRows } of members) {
        trials.set(rolloutId, {
          trial: groups.length === 1 ? sampleIndex : count++,
          ...(branches.has(rolloutId) && { isBranch: true }),
          ...(hasSeveralRows && { hasSeveralRows }),
        });
      }
    }
  }
  return trials;
}

/** A group's index, or its id if none of its attempts has an index. */
type GroupKey = number | string;

/**
 * Returns the groups of each task in order, with their attempts in order. A gateway's groups have
 * no index and come before all others.
 */
function groupsByTask(attempts: readonly Attempt[]) {
  const indexes = new Map<string, number>();
  for (const { groupId, groupIndex } of attempts) {
    if (groupIndex !== undefined) indexes.set(groupId, groupIndex);
  }
  const tasks = new Map<string, Map<GroupKey, Attempt[]>>();
  for (const attempt of attempts) {
    const { taskId, groupId, groupIndex = indexes.get(groupId) } = attempt;
    const groups = tasks.get(taskId) ?? new Map<GroupKey, Attempt[]>();
    tasks.set(taskId, groups);
    const key = groupIndex ?? groupId;
    const members = groups.get(key);
    if (members === undefined) groups.set(key, [attempt]);
    else members.push(attempt);
  }
  const rank = (key: GroupKey): number => (typeof key === "number" ? key : -1);
  return Array.from(tasks, ([taskId, groups]) => {
    for (const members of groups.values()) members.sort((a, b) => a.sampleIndex - b.sampleIndex);
    return [taskId, [...groups].sort(([a], [b]) => rank(a) - rank(b))] as const;
  });
}

function refuseTwice(members: readonly Attempt[], group: string, dir: string): void {
  for (const [place, { sampleIndex, rolloutId }] of members.entries()) {
    const before = members[place - 1];
    if (before?.sampleIndex !== sampleIndex) continue;
    throw new UsageError(
      `Cannot number the attempts in ${dir}: ${before.rolloutId} and ${rolloutId} are both attempt ${sampleIndex} ` +
        `of ${group}, expected one; turnwright verify says what is wrong`,
    );
  }
}

/** Yields the numbered episodes. Skips an episode that finished after the numbering. */
export async function* numberedEpisodes(
  run: Pick<StoredRun, "rows">,
  trials: TrialNumbers,
): AsyncGenerator<NumberedEpisode> {
  for await (const row of run.rows()) {
    const place = trials.get(row.rolloutId);
    if (place !== undefined) yield { row, ...place };
  }
}

/** Yields the numbered episodes that do not branch from another attempt. */
export async function* trialEpisodes(
  run: Pick<StoredRun, "rows">,
  trials: TrialNumbers,
): AsyncGenerator<NumberedEpisode> {
  for await (const episode of numberedEpisodes(run, trials)) {
    if (episode.isBranch !== true) yield episode;
  }
}
