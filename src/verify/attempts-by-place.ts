import type { AttemptCounts } from "../run/schedule/attempt-counts.ts";
import { isCount } from "../trajectory/violation.ts";
import type { PlannedAttempt } from "./check-plan.ts";
import type { EpisodeFacts } from "./episode-file.ts";

/**
 * The attempts of a run whose `run.json` does not say what was planned, by the places that its episodes
 * name: which groups there will be, and so what is missing, nobody knows.
 *
 * @returns nothing where an episode names no place, or one that another has.
 */
export function attemptsByPlace(
  { started }: AttemptCounts,
  episodes: ReadonlyMap<string, EpisodeFacts>,
): readonly PlannedAttempt[] | undefined {
  const groups = new Map<number, string[]>();
  for (const [rolloutId, { fields }] of episodes) {
    const { groupIndex, sampleIndex } = fields;
    if (!isCount(groupIndex) || !isCount(sampleIndex) || sampleIndex >= started) return undefined;
    const ids = groups.get(groupIndex) ?? Array.from({ length: started }, () => "");
    if (ids[sampleIndex] !== "") return undefined;
    ids[sampleIndex] = rolloutId;
    groups.set(groupIndex, ids);
  }
  return [...groups]
    .toSorted(([one], [other]) => one - other)
    .flatMap(([groupIndex, ids]) =>
      ids.map((rolloutId, sampleIndex) => ({
        rolloutId,
        groupIndex,
        label: rolloutId,
        isMissing: false,
        index: groupIndex * started + sampleIndex,
      })),
    );
}
