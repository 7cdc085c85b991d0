import { UsageError } from "../../errors.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { askSource, askTaskIndex, type AskOptions } from "../schedule/ask-source.ts";
import type { FinishedEpisode } from "./episode-row.ts";
import type { BeginLine } from "../recording/recording-line.ts";
import type { SourcedTask, TaskSource } from "../schedule/task-source.ts";

/** An attempt that an earlier start began, as its recording names it. */
export type StartedAttempt = Pick<
  BeginLine,
  "rolloutId" | "groupId" | "groupIndex" | "sampleIndex"
>;

/** What earlier starts left in the place of a group. */
export interface EarlierGroup {
  readonly groupIndex: number;
  /** Attempts that are finished. */
  readonly earlier: readonly FinishedEpisode[];
  /** Attempts that were begun and are not finished. Default: none. */
  readonly begun?: readonly StartedAttempt[];
}

/**
 * Holds what earlier starts left against a repeatable source, which is to give the same groups again.
 *
 * Most of the groups that need nothing more are passed by the indexes of their tasks, where the source tells these. Of
 * the first and the last the tasks themselves are asked for, which tell their environment and split as well, and
 * whether others stand in front of them now.
 *
 * @param groups - In order of their places.
 * @param isNeeded - Whether the task of a group is needed later.
 * @returns what the source gave for those whose task is needed, by their places: it need not give that once more.
 * @throws UsageError where it gives another group in the place of one, and as `askSource()` does.
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
      // A source need not keep the tasks of groups that have ended, and may end before others now.
      if (sourced !== undefined) requireSameGroup(sourced.groupId ?? sourced.task.id, group);
      if (isNeeded(group)) needed.set(group.groupIndex, sourced);
    }
    if (isTurnOver()) await takeTurn();
  }
  return needed;
}

/** Whether the source says that a group's attempts are of its task. */
function isOfTask({ groupIndex, earlier }: EarlierGroup, source: TaskSource): boolean {
  const expected = askTaskIndex(source, groupIndex);
  return earlier.every(({ taskIndex }) => taskIndex === expected);
}

/**
 * Attempts at two tasks are no group: a source that gives others than it gave to an earlier start is refused. What is
 * finished says which those were, and where nothing is, what was begun.
 *
 * @param groupId - Which group the source has in that place now.
 * @throws UsageError where attempts of another one are there.
 */
export function requireSameGroup(
  groupId: string,
  { groupIndex, earlier, begun = [] }: EarlierGroup,
): void {
  const isOther = ({ rolloutId, sampleIndex }: Pick<StartedAttempt, "rolloutId" | "sampleIndex">) =>
    rolloutId !== `${groupId}#${sampleIndex}`;
  const [finished] = inOrder(earlier.filter(isOther));
  if (finished !== undefined)
    throw otherGroup(groupId, groupIndex, `${finished.rolloutId} is finished`);
  // Two lists may both have started attempts in a place, so one attempt of this group is enough.
  if (earlier.length > 0 || !begun.every(isOther)) return;
  const [first] = inOrder(begun);
  if (first !== undefined) throw otherGroup(groupId, groupIndex, `${first.rolloutId} was begun`);
}

function inOrder<Attempt extends { readonly sampleIndex: number }>(
  attempts: readonly Attempt[],
): readonly Attempt[] {
  return attempts.toSorted((one, other) => one.sampleIndex - other.sampleIndex);
}

function otherGroup(groupId: string, groupIndex: number, what: string): UsageError {
  return new UsageError(
    `Cannot go on with group ${groupIndex}: ${what} in its place, and the source of tasks gives ` +
      `${groupId} there now; start with the same tasks in the same order, or in another folder`,
  );
}
