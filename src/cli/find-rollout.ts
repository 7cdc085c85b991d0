import { UsageError } from "../errors.ts";

/**
 * The rollout that a person means: its id, or the end of it such as `7#3`, or a task's number where that has
 * one attempt.
 *
 * @throws UsageError where none or several fit, naming those that do.
 */
export function findRollout(ids: readonly string[], wanted: string, place: string): string {
  if (ids.includes(wanted)) return wanted;
  const found = ids.filter(
    (id) => id.endsWith(`/${wanted}`) || id.slice(0, id.lastIndexOf("#")).endsWith(`/${wanted}`),
  );
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return only;
  const what =
    only === undefined
      ? `there is no recording of it (${ids.length} are recorded)`
      : `${found.length} fit, name one: ${found.slice(0, 20).join(", ")}`;
  throw new UsageError(`Cannot find episode ${wanted} of ${place}: ${what}`);
}
