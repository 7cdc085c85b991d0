import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { parseTaskIndexes, planRun, type PlannedEpisode } from "../run/plan-run.ts";
import type { ScopeConfig } from "./scope-config.ts";

/**
 * The episodes of a configuration.
 *
 * @throws UsageError for a split or tasks that the environment does not have.
 */
export function planScope(
  { split, tasks, sampleCount, seed }: ScopeConfig,
  environment: Environment,
): readonly PlannedEpisode[] {
  const size = environment.splits[split];
  if (size === undefined) {
    const known = Object.keys(environment.splits).join(", ");
    throw new UsageError(
      `Cannot find split "${split}" of ${environment.name}: expected one of ${known}`,
    );
  }
  const taskIndexes = parseTaskIndexes(tasks, { split, size });
  return planRun(environment, { split, taskIndexes, sampleCount, seed });
}
