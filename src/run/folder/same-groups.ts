import { UsageError } from "../../errors.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { askSource, askTaskIndex, type AskOptions } from "../schedule/ask-source.ts";
import type { FinishedEpisode } from "./episode-row.ts";
import type { BeginLine } from "../recording/recording-line.ts";
import type { SourcedTask, TaskSource } from "../schedule/task-source.ts";

/** An unfinished attempt of an earlier start, as its recording names it. */
export type StartedAttempt = Pick<
  BeginLine,
  "rolloutId" | "groupId" | "groupIndex" | "sampleIndex"
>;

/** The attempts of earlier starts in one group. */
export interface EarlierGroup {
  readonly groupIndex: number;
  /** Finished attempts. */
  readonly earlier: readonly FinishedEpisode[];
  /** Unfinished attempts. Default: none. */
  readonly started?: readonly StartedAttempt[];
}

/**
 * Checks that a repeatable source gives the groups of earlier starts again.
 *
 * Most complete groups are only compared by task index, if the source has `taskIndexAt()`. The source is asked for the
 * first and the last group. Their tasks also show the environment, the split, and groups that were inserted before.
 *
 * @param groups - The groups in the order of their indexes.
 * @param isNeeded - True if the group's task is needed later.
 * @returns the tasks that are needed, by group index, so that the source is not asked for them again.
 * @throws UsageError if the source gives another group at an index, and as `askSource()` does.
 */
export async function requireSameGroups(
  groups: readonly EarlierGroup[],
  {
    source,
    isNeeded,
    ...options
  }: AskOptions & {
    readonly source: TaskSource;
    readonly isNeeded: (group: EarlierGroup) => boolean;
  },
): Promise<ReadonlyMap<number, SourcedTask | undefined>> {
  const needed = new Map<number, SourcedTask | undefined>();
  const { length = Infinity } = source;
  const given = groups.filter(({ groupIndex }) => groupIndex < length);
  for (const [place, group] of given.entries()) {
    const isBetween = place > 0 && place < given.length - 1;
    if (!isBetween || isNeeded(group) || !isOfTask(group, source)) {
      const sourced = await askSource(source, group.groupIndex, options);
      // The source may have dropped the tasks of complete groups, or be shorter now.
      if (sourced !== undefined) requireSameGroup(sourced.groupId ?? sourced.task.id, group);
      if (isNeeded(group)) needed.set(group.groupIndex, sourced);
    }
    if (isTurnOver()) await takeTurn();
  }
  return needed;
}

/** True if the source's task index at this group is that of all its attempts. */
function isOfTask({ groupIndex, earlier }: EarlierGroup, source: TaskSource): boolean {
  const expected = askTaskIndex(source, groupIndex);
  return earlier.every(({ taskIndex }) => taskIndex === expected);
}

/**
 * Checks that the attempts of earlier starts are of the group that the source gives. Finished attempts decide. If there
 * are none, the unfinished ones decide.
 *
 * @param groupId - The id of the group that the source gives.
 * @throws UsageError if the attempts are of another group.
 */
export function requireSameGroup(
  groupId: string,
  { groupIndex, earlier, started = [] }: EarlierGroup,
): void {
  const isOther = ({ rolloutId, sampleIndex }: Pick<StartedAttempt, "rolloutId" | "sampleIndex">) =>
    rolloutId !== `${groupId}#${sampleIndex}`;
  const [finished] = inOrder(earlier.filter(isOther));
  if (finished !== undefined)
    throw otherGroup(groupId, groupIndex, `${finished.rolloutId} is finished`);
  // Two lists may both have started attempts at this index, so one attempt of this group is enough.
  if (earlier.length > 0 || !started.every(isOther)) return;
  const [first] = inOrder(started);
  if (first !== undefined) throw otherGroup(groupId, groupIndex, `${first.rolloutId} was started`);
}

function inOrder<Attempt extends { readonly sampleIndex: number }>(
  attempts: readonly Attempt[],
): readonly Attempt[] {
  return attempts.toSorted((one, other) => one.sampleIndex - other.sampleIndex);
}

function otherGroup(groupId: string, groupIndex: number, what: string): UsageError {
  return new UsageError(
    `Cannot resume group ${groupIndex}: ${what} in its place, and the source of tasks gives ` +
      `${groupId} there now; start with the same tasks in the same order, or in another folder`,
  );
}
