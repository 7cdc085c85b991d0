import type { KnownPolicy } from "../queue/run/policy-state.ts";
import type { ServiceEntry } from "./service-journal.ts";

/** Weights that the engine loaded or started to load. */
interface NotedWeights {
  readonly version: number;
  readonly path: string;
}

/** The policy's state, according to the journal. */
export interface PolicyMemory {
  /** The last announced version. Absent if none was announced. */
  readonly version?: number;
  readonly isPaused: boolean;
  /** The weights of the version, if they were announced with it. */
  readonly weights?: NotedWeights;
  /**
   * The weights that the engine was loading when an earlier start ended. Its servers may have
   * different weights.
   */
  readonly loading?: NotedWeights;
}

/** Reads the policy's state from the journal of earlier starts. */
export function readPolicyMemory(entries: readonly ServiceEntry[]): PolicyMemory {
  let isPaused = false;
  let announced: Omit<PolicyMemory, "isPaused" | "loading"> = {};
  let loading: NotedWeights | undefined;
  for (const entry of entries) {
    if (entry.type === "paused") isPaused = entry.isPaused;
    else if (entry.type === "policy-loading") {
      loading = { version: entry.version, path: entry.weights };
    } else if (entry.type === "policy-kept") loading = undefined;
    else if (entry.type === "policy") {
      const { version, weights: path } = entry;
      loading = undefined;
      announced = { version, ...(path !== undefined && { weights: { version, path } }) };
    }
  }
  return { ...announced, isPaused, ...(loading !== undefined && { loading }) };
}

/**
 * Returns the policy's state for workers until the service has checked the engine. The gate
 * interrupts sampling if the policy is paused or its servers may have different weights, and holds
 * new turns if the servers may have lost their weights.
 */
export function policyAtStart(
  { version, isPaused, weights, loading }: PolicyMemory,
  canLoad: boolean,
): KnownPolicy {
  const mayBeMixed = canLoad && loading !== undefined;
  const mayBeLost = canLoad && weights !== undefined;
  const unpaused = mayBeLost ? "hold" : "open";
  return {
    gate: isPaused || mayBeMixed ? "interrupt" : unpaused,
    ...(version !== undefined && { version }),
  };
}
