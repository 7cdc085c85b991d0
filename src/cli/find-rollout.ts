import { UsageError } from "../errors.ts";

/** A rollout as a person may mean it. */
interface NamedRollout {
  readonly rolloutId: string;
  /** Its task's index, where that is known. */
  readonly taskIndex?: number;
}

/**
 * The rollout that a person means: its id, or the end of it such as `7#3`, or `2.77#0` or `#0` of a fork; or,
 * where that has one attempt, a task's id, the end of it, or its number.
 *
 * @throws UsageError where none or several fit, naming those that do.
 */
export function findRollout(
  rollouts: readonly NamedRollout[],
  wanted: string,
  { place, none }: { readonly place: string; readonly none: string },
): string {
  const isNumber = /^\d+$/.test(wanted);
  const found = new Set<string>();
  for (const { rolloutId, taskIndex } of rollouts) {
    if (rolloutId === wanted) return wanted;
    const taskId = rolloutId.slice(0, rolloutId.lastIndexOf("#"));
    const isEnd = endsWith(rolloutId, wanted);
    const isTask = taskId === wanted || taskId.endsWith(`/${wanted}`);
    if (isEnd || isTask || (isNumber && taskIndex === Number(wanted))) found.add(rolloutId);
  }
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return only;
  const what =
    only === undefined
      ? none
      : `${found.size} fit, name one: ${[...found].toSorted().slice(0, 20).join(", ")}`;
  throw new UsageError(`Cannot find episode ${wanted} of ${place}: ${what}`);
}

/** Whether the parts of an id that are named are its last ones. */
function endsWith(rolloutId: string, wanted: string): boolean {
  if (!rolloutId.endsWith(wanted)) return false;
  return wanted.startsWith("#") || ["/", "@"].includes(rolloutId.at(-wanted.length - 1) ?? "");
}

/** What is said of a folder without recordings. */
export const nothingRecorded = "nothing is recorded there (see rollout --record)";

/** Named where none of the recorded ones fits. */
const shownCount = 4;

/** The same among recorded rollouts. */
export function findRecorded(ids: readonly string[], wanted: string, place: string): string {
  const more = ids.length > shownCount ? ` and ${ids.length - shownCount} more` : "";
  const none =
    ids.length === 0
      ? nothingRecorded
      : `there is no recording of it; there are ${ids.slice(0, shownCount).join(", ")}${more}`;
  const rollouts = ids.map((rolloutId) => ({ rolloutId }));
  return findRollout(rollouts, wanted, { place, none });
}
