/** The group of an attempt, as its rollout's id names it. */
export function groupIdOf(rolloutId: string): string {
  return rolloutId.slice(0, rolloutId.lastIndexOf("#"));
}
