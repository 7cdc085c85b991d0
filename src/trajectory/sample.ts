import type { Failure } from "../errors.ts";
import type { Segment, TurnSpan } from "./trajectory-recorder.ts";

/** How an episode can end, and why it can end so. */
export const stopReasons = {
  completed: ["user-left", "terminal-tool", "finished", "unscored"],
  truncated: [
    "max-turns",
    "length",
    "max-tokens",
    "context-full",
    "deadline",
    "format-errors",
    "unscored",
  ],
  failed: ["failure"],
  aborted: ["interrupted"],
} as const;

/** How an episode ended. */
export type Outcome = keyof typeof stopReasons;

/** How many episodes ended how; those that were interrupted are counted where there are any. */
export type OutcomeCounts = Record<Exclude<Outcome, "aborted">, number> & { aborted?: number };

/** Why it ended there. */
export type StopReason = (typeof stopReasons)[Outcome][number];

/** What all rows of one rollout share. */
export interface RolloutIdentity {
  readonly rolloutId: string;
  readonly groupId: string;
  readonly taskId: string;
  /** Absent for what is no fork. */
  readonly forkedFrom?: ForkPlace;
}

/** Where a fork parted from another rollout. JSON-able. */
export interface ForkPlace {
  readonly rolloutId: string;
  /** The fork's first turn, 0-based: those before it are the other's, and are trained in its rows. */
  readonly turnIndex: number;
}

/** How a rollout ended. */
export interface RolloutEnd {
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  /** Absent where nothing scored the episode; never 0 instead. */
  readonly reward?: number;
  /** Present exactly where `outcome` is `failed`. */
  readonly failure?: Failure;
}

/**
 * One training row, as `samples.jsonl` holds it. All arrays but `turns` have the length of
 * `tokenIds`.
 */
export interface Sample extends RolloutIdentity, RolloutEnd {
  /** Version of this format. */
  readonly format: 1;
  /** 0-based place of the row within its rollout. */
  readonly segment: number;
  readonly tokenIds: readonly number[];
  /** Ids of the row's first prompt. */
  readonly promptLength: number;
  /** 1 where the policy sampled the token, 0 elsewhere. */
  readonly lossMask: readonly (0 | 1)[];
  /** Natural logarithms of the sampled tokens' probabilities; 0 where the mask is 0. */
  readonly logprobs: readonly number[];
  /** The policy's version as the engine named it; `""` where the mask is 0. */
  readonly policyVersions: readonly string[];
  readonly turns: readonly TurnSpan[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The training rows of a rollout, one a segment. */
export function toSamples(
  segments: readonly Segment[],
  identity: RolloutIdentity,
  end: RolloutEnd,
  metadata: Readonly<Record<string, unknown>>,
): readonly Sample[] {
  return segments.map((segment, index) => ({
    format: 1,
    rolloutId: identity.rolloutId,
    groupId: identity.groupId,
    taskId: identity.taskId,
    ...(identity.forkedFrom !== undefined && { forkedFrom: identity.forkedFrom }),
    segment: index,
    tokenIds: segment.tokenIds,
    promptLength: segment.promptLength,
    lossMask: segment.lossMask,
    logprobs: segment.logprobs,
    policyVersions: segment.policyVersions,
    turns: segment.turns,
    ...(end.reward !== undefined && { reward: end.reward }),
    outcome: end.outcome,
    stopReason: end.stopReason,
    ...(end.failure !== undefined && { failure: end.failure }),
    metadata,
  }));
}
