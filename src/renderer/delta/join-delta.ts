import type { EnvironmentDelta } from "../renderer.ts";

/** A template's stop tokens. */
export interface StopIds {
  /** Ids at which sampling ends. */
  readonly stops: ReadonlySet<number>;
  /** Ids that end sampling and open the next turn. */
  readonly openers: ReadonlySet<number>;
}

/**
 * Joins a delta to the last sampled id.
 *
 * The delta starts with the token with which the template closes the turn. If the policy sampled a stop id, that id
 * replaces the token, even if it is a different one; otherwise the close is synthesised. A stop token that opens
 * the next turn must be the right one: a wrong one is dropped, and after an ordinary stop the right one is added.
 *
 * @param ids - The complete delta; its first id is the closing or opening token.
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
