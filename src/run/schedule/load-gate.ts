import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import { systemClock } from "../../async/clock.ts";
import { createAdmissionGate, type EngineGate } from "./admission.ts";

/** How many episodes are played at once. */
interface LoadGateOptions {
  /** Most of them. At least 1. */
  readonly concurrency: number;
  /** Whether fewer are played while the engine is full. */
  readonly followLoad: boolean;
}

/**
 * The gate of a run that follows its engine's load; nothing where it is not to, or where the engine
 * cannot say how busy it is: a run keeps to its concurrency by itself.
 */
export function openLoadGate(
  { engine, clock = systemClock }: Pick<EpisodeSetup, "engine" | "clock">,
  { concurrency, followLoad }: LoadGateOptions,
): EngineGate | undefined {
  if (!followLoad || engine.load === undefined) return undefined;
  const read = async (options: { signal: AbortSignal }) => await engine.load!(options);
  return createAdmissionGate({ concurrency, follow: { read, clock } });
}
