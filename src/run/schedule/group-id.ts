/** Returns the group id in a rollout id. */
export function groupIdOf(rolloutId: string): string {
  return rolloutId.slice(0, rolloutId.lastIndexOf("#"));
}
