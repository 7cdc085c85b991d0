import type { EnvironmentDelta } from "../renderer.ts";

/** What is known of a template's stop tokens. */
export interface StopIds {
  /** Ids at which sampling ends. */
  readonly stops: ReadonlySet<number>;
  /** Ids that end sampling and open the next turn. */
  readonly openers: ReadonlySet<number>;
}

/**
 * Fits a delta to the id that the policy sampled last.
 *
 * The delta begins with the token that the template closes the turn with. Where the policy stopped
 * by itself, its own stop id stands in that token's place, also where it is another one; where it
 * did not, the close is synthesised. Stop tokens that open the next turn must be the right ones:
 * a wrong one is dropped, and behind an ordinary stop the right one is added.
 *
 * @param ids the whole delta, its first id the closing or opening token.
 */
export function joinDelta(
  ids: readonly number[],
  lastSampledId: number | undefined,
  { stops, openers }: StopIds,
): Omit<EnvironmentDelta, "text"> {
  const anchor = ids[0];
  if (anchor === undefined || lastSampledId === undefined || !stops.has(lastSampledId)) {
    return { ids, closeSynthesised: true };
  }
  if (lastSampledId === anchor) return { ids: ids.slice(1), closeSynthesised: false };
  if (openers.has(lastSampledId)) {
    return { ids, closeSynthesised: false, droppedStopId: lastSampledId };
  }
  return {
    ids: openers.has(anchor) ? ids : ids.slice(1),
    closeSynthesised: false,
    foreignStopId: lastSampledId,
  };
}
