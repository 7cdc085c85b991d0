import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import { systemClock } from "../../async/clock.ts";
import { createAdmissionGate, type EngineGate } from "./admission.ts";

/** Limits on the number of episodes that are played at the same time. */
interface LoadGateOptions {
  /** The maximum. At least 1. */
  readonly concurrency: number;
  /** True to play fewer episodes while the engine is full. */
  readonly followLoad: boolean;
}

/**
 * Opens a gate that follows the engine's load; returns `undefined` if that is not requested, or the engine does not
 * report its load. Without a gate, the run itself limits its concurrency.
 */
export function openLoadGate(
  { engine, clock = systemClock }: Pick<EpisodeSetup, "engine" | "clock">,
  { concurrency, followLoad }: LoadGateOptions,
): EngineGate | undefined {
  if (!followLoad || engine.load === undefined) return undefined;
  const read = async (options: { signal: AbortSignal }) => await engine.load!(options);
  return createAdmissionGate({ concurrency, follow: { read, clock } });
}
