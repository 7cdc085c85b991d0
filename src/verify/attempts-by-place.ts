import type { AttemptCounts } from "../run/schedule/attempt-counts.ts";
import { isCount } from "../trajectory/violation.ts";
import type { PlannedAttempt } from "./check-plan.ts";
import type { EpisodeFacts } from "./episode-file.ts";

/**
 * Returns the attempts of a run without a fixed plan, by the places that its episodes name. Such a
 * run has no known number of groups, so no attempt can be missing.
 * @returns `undefined` if an episode has no place, or two episodes have the same place.
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
