import type { ColumnParts } from "../columns/column-part.ts";
import type { Failure } from "../errors.ts";
import { type Segment, shareColumns, type TurnSpan } from "./segment.ts";

/** The stop reasons of each outcome. */
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

/** The way an episode ended. */
export type Outcome = keyof typeof stopReasons;

/** Number of episodes by outcome. `aborted` is present only if there are any. */
export type OutcomeCounts = Record<Exclude<Outcome, "aborted">, number> & { aborted?: number };

/** The reason why an episode ended. */
export type StopReason = (typeof stopReasons)[Outcome][number];

/** The ids that all rows of one rollout share. */
export interface RolloutIdentity {
  readonly rolloutId: string;
  readonly groupId: string;
  readonly taskId: string;
  /** The place at which the rollout left its original. Absent if the rollout is not a fork. */
  readonly forkedFrom?: ForkPlace;
}

/** The turn at which a rollout was forked from another. JSON-able. */
export interface ForkPlace {
  readonly rolloutId: string;
  /** 0-based index of the fork's first turn. The turns before it are trained in the original's rows. */
  readonly turnIndex: number;
}

/** The end of a rollout. */
export interface RolloutEnd {
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  /** The reward. Absent, and never 0 instead, if the episode was not scored. */
  readonly reward?: number;
  /** Present only if `outcome` is `failed`. */
  readonly failure?: Failure;
}

/** One training row of `samples.jsonl`. All arrays except `turns` have the length of `tokenIds`. */
export interface Sample extends RolloutIdentity, RolloutEnd {
  /** Version of this format. */
  readonly format: 1;
  /** 0-based index of the row in its rollout. */
  readonly segment: number;
  readonly tokenIds: readonly number[];
  /** Number of ids of the row's first prompt. */
  readonly promptLength: number;
  /** 1 if the policy sampled the id, else 0. */
  readonly lossMask: readonly (0 | 1)[];
  /** Natural logarithms of the sampled ids' probabilities. 0 if the mask is 0. */
  readonly logprobs: readonly number[];
  /** The policy version that the engine reported. `""` if the mask is 0. */
  readonly policyVersions: readonly string[];
  readonly turns: readonly TurnSpan[];
  /** The side columns, without their bytes. Absent if the run has none. */
  readonly columns?: ColumnParts;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * Returns the training rows of a rollout, one for each segment.
 *
 * @param metadataOf - Returns the metadata of a segment's row. Default: none.
 */
export function toSamples(
  segments: readonly Segment[],
  identity: RolloutIdentity,
  end: RolloutEnd,
  metadataOf: (segment: Segment, index: number) => Readonly<Record<string, unknown>> = () => ({}),
): readonly Sample[] {
  return segments.map((segment, index) => {
    const row: Sample = {
      format: 1,
      rolloutId: identity.rolloutId,
      groupId: identity.groupId,
      taskId: identity.taskId,
      ...(identity.forkedFrom !== undefined && { forkedFrom: identity.forkedFrom }),
      segment: index,
      get tokenIds() {
        return segment.tokenIds;
      },
      promptLength: segment.promptLength,
      get lossMask() {
        return segment.lossMask;
      },
      get logprobs() {
        return segment.logprobs;
      },
      get policyVersions() {
        return segment.policyVersions;
      },
      turns: segment.turns,
      ...(segment.columns !== undefined && { columns: segment.columns }),
      ...(end.reward !== undefined && { reward: end.reward }),
      outcome: end.outcome,
      stopReason: end.stopReason,
      ...(end.failure !== undefined && { failure: end.failure }),
      metadata: metadataOf(segment, index),
    };
    shareColumns(segment, row);
    return row;
  });
}
