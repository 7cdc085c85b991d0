import { isObject } from "../../values/is-object.ts";
import type { RunManifest } from "../folder/run-manifest.ts";

/** The setting with the task indexes of a run. */
export const tasksMember = "tasks";

/**
 * True if the plan of a later start has the tasks of a run's plan, and then others. Such a start plays the same
 * attempts with the same seeds and adds some, because a group's index in the plan decides its seeds.
 */
export function continuesPlan(
  before: Pick<RunManifest, "found">,
  now: Pick<RunManifest, "found">,
): boolean {
  const [was, is] = [tasksIn(planOf(before)), tasksIn(planOf(now))];
  if (was === undefined || is === undefined) return false;
  return was.every((task, index) => task === is[index]);
}

/** True if a run's plan lists its tasks. A run with epochs draws them while it is played. */
export function listsTasks(manifest: Pick<RunManifest, "found">): boolean {
  return tasksIn(planOf(manifest)) !== undefined;
}

/** Returns the manifest of a run with the tasks of a later start, which continue its plan. */
export function withTasksOf<Manifest extends RunManifest>(
  stored: Manifest,
  { configuration, found }: Pick<RunManifest, "configuration" | "found">,
): Manifest {
  const tasks = configuration[tasksMember];
  const settings: unknown = stored.found["settings"];
  return {
    ...stored,
    configuration: { ...stored.configuration, tasks },
    found: {
      ...stored.found,
      plan: found["plan"],
      ...(isObject(settings) && { settings: { ...settings, tasks } }),
    },
  };
}

/** Returns the plan in a manifest. A manifest that a program wrote may have none. */
export function planOf({ found }: { readonly found: unknown }): unknown {
  return isObject(found) ? found["plan"] : undefined;
}

function tasksIn(plan: unknown): readonly unknown[] | undefined {
  const tasks = isObject(plan) ? plan["taskIndexes"] : undefined;
  return Array.isArray(tasks) ? tasks : undefined;
}
