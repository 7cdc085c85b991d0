import type { Failure } from "../errors.ts";

/** The parties that can cause an unsuccessful episode. */
export const faultParties = ["user", "agent", "environment"] as const;

/** One of `faultParties`. */
export type FaultParty = (typeof faultParties)[number];

/** The agent's first error. The names are τ-bench's. */
export const faultTypes = [
  "called_wrong_tool",
  "used_wrong_tool_argument",
  "goal_partially_completed",
  "other",
] as const;

/** One of `faultTypes`. */
export type FaultType = (typeof faultTypes)[number];

/** A judge's verdict. JSON-able. */
export interface Fault {
  readonly party: FaultParty;
  /** The judge's reason for the party. */
  readonly reason: string;
  /** Present exactly if `party` is `agent`. */
  readonly type?: FaultType;
  readonly typeReason?: string;
}

/** The cost of judging an episode. JSON-able. */
export interface JudgeUsage {
  readonly callCount: number;
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** The cost in US dollars. Absent if no price is known. */
  readonly costUsd?: number;
}

/**
 * An unsuccessful episode with its fault, or with the reason why the judge found none. JSON-able.
 */
export interface JudgedEpisode {
  readonly rolloutId: string;
  readonly taskId: string;
  readonly taskIndex: number;
  readonly reward: number;
  readonly fault?: Fault;
  /** The judge's failure, with party `grader`. Absent if there is a fault. */
  readonly failure?: Failure;
  readonly usage: JudgeUsage;
  /** The judge model's name. */
  readonly judge: string;
  /** The `hashRow()` of the row that the judge saw. */
  readonly episodeHash: string;
}
