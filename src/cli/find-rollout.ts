import { UsageError } from "../errors.ts";

/** A rollout, with the facts by which a person can name it. */
interface NamedRollout {
  readonly rolloutId: string;
  /** The index of its task, if known. */
  readonly taskIndex?: number;
}

/**
 * Finds a rollout by its id, by the end of its id such as `7#3`, or by `2.77#0` or `#0` of a fork. A task with one
 * attempt can be named by its id, the end of its id, or its number.
 *
 * @throws UsageError if no rollout or several rollouts fit; the message names those that fit.
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

/** True if the wanted text is the last part of the id, from a `#`, `/` or `@` on. */
function endsWith(rolloutId: string, wanted: string): boolean {
  if (!rolloutId.endsWith(wanted)) return false;
  return wanted.startsWith("#") || ["/", "@"].includes(rolloutId.at(-wanted.length - 1) ?? "");
}

/** The message if a folder has no recordings. */
export const nothingRecorded = "nothing is recorded there (see rollout --record)";

/** Maximum number of recorded rollouts in the message if none matches. */
const shownCount = 4;

/** Finds a recorded rollout by a name as `findRollout()` accepts it. */
export function findRecorded(ids: readonly string[], wanted: string, place: string): string {
  const more = ids.length > shownCount ? ` and ${ids.length - shownCount} more` : "";
  const none =
    ids.length === 0
      ? nothingRecorded
      : `there is no recording of it; there are ${ids.slice(0, shownCount).join(", ")}${more}`;
  const rollouts = ids.map((rolloutId) => ({ rolloutId }));
  return findRollout(rollouts, wanted, { place, none });
}
