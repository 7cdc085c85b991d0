import type { Failure } from "../errors.ts";

/** Who an unsuccessful episode is put down to. */
export const faultParties = ["user", "agent", "environment"] as const;

/** One of `faultParties`. */
export type FaultParty = (typeof faultParties)[number];

/** What an agent did wrong first. The names are τ-bench's. */
export const faultTypes = [
  "called_wrong_tool",
  "used_wrong_tool_argument",
  "goal_partially_completed",
  "other",
] as const;

/** One of `faultTypes`. */
export type FaultType = (typeof faultTypes)[number];

/** What a judge found. JSON-able. */
export interface Fault {
  readonly party: FaultParty;
  /** In the judge's words. */
  readonly reason: string;
  /** Present exactly where `party` is `agent`. */
  readonly type?: FaultType;
  readonly typeReason?: string;
}

/** What judging an episode took. JSON-able. */
export interface JudgeUsage {
  readonly callCount: number;
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** In US dollars; absent where no price is known. */
  readonly costUsd?: number;
}

/** An unsuccessful episode with its fault, or with why the judge could not find it. JSON-able. */
export interface JudgedEpisode {
  readonly rolloutId: string;
  readonly taskId: string;
  readonly taskIndex: number;
  readonly reward: number;
  readonly fault?: Fault;
  /** Party `grader`. Absent where there is a fault. */
  readonly failure?: Failure;
  readonly usage: JudgeUsage;
  /** The judge model's name. */
  readonly judge: string;
  /** The `hashRow()` of the episode's row that was judged. */
  readonly episodeHash: string;
}
