import type { RewardComponents } from "../environment/reward-parts.ts";
import type { AttemptPlace } from "../agent/turn-form.ts";
import type { AttemptStatus } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { DiscardedSampling, GenerationPiece } from "../engine/engine.ts";
import type { Failure } from "../errors.ts";
import type { GatewayCounts } from "./gateway-counters.ts";
import type { Message } from "../message.ts";
import type { RolloutEnd, RolloutIdentity } from "../trajectory/sample.ts";
import type { Segment } from "../trajectory/segment.ts";
import type { Rejection, TurnLink, TurnRole } from "./turn-lineage.ts";
import type { UserSpending, UserUsage } from "../user/user.ts";

/** A tool call or a user reply that a turn caused. JSON-able. */
export interface TurnStep {
  /** The tool's name, or `user` for a reply of the user. */
  readonly source: string;
  readonly callId: string;
  /** The call's arguments as JSON. Absent for words and refusals. */
  readonly arguments?: string;
  readonly observation: string;
  /**
   * `acted`: the environment performed it. `refused`: the environment did not get it, and the policy got an error.
   * `ignored`: neither the environment nor the policy got anything, and `observation` is empty.
   */
  readonly result: "acted" | "refused" | "ignored";
  readonly isError?: boolean;
  /** Present if the call was malformed, repaired and performed. */
  readonly repaired?: true;
}

/** One attempt to call a tool. JSON-able. */
export interface AttemptRecord extends AttemptPlace {
  /** Range in the turn's sampled ids. The end is exclusive. */
  readonly tokenSpan: readonly [start: number, end: number];
}

/** Facts about the form of a turn. JSON-able. */
export interface FormatFacts {
  /** True if the turn has no malformed call, no leaked markup and no malformed reasoning. */
  readonly formatOk: boolean;
  /** The first malformed call, if any. */
  readonly firstError?: Pick<AttemptRecord, "status" | "span" | "tokenSpan">;
  /** True if markup of calls or reasoning is left in the turn's visible text. */
  readonly leakedMarkup: boolean;
  /** True if reasoning is opened or closed too often, or not closed in a complete turn. */
  readonly thinkingMalformed: boolean;
}

/** One turn of the policy, with its results. JSON-able. */
export interface TurnRecord {
  readonly turnIndex: number;
  /**
   * The sampled text with its control tokens, without the closing stop token. For an engine that returns messages, the
   * content and the calls, each in a line of its own.
   */
  readonly text: string;
  /** The reasoning, if any. It was removed before calls were parsed. */
  readonly reasoning?: string;
  readonly finish: "stop" | "length";
  readonly sampledTokenCount: number;
  readonly promptTokenCount: number;
  readonly cachedTokenCount?: number;
  /** Present if the engine reported no token counts for the turn. The counts are then 0. */
  readonly isUnmetered?: true;
  readonly attemptCounts: Readonly<Partial<Record<AttemptStatus, number>>>;
  /** All attempts to call a tool, in the order of the text, if any. Spans count from the start of `text`. */
  readonly attempts?: readonly AttemptRecord[];
  /** Faults in the markup of the turn's calls and reasoning. Absent for agents without such markup: act and react. */
  readonly format?: FormatFacts;
  readonly steps: readonly TurnStep[];
  /** Sampled ids that no row contains, if any. */
  readonly discarded?: readonly DiscardedSampling[];
  /** Number of interruptions by the engine. Absent instead of 0. */
  readonly interruptionCount?: number;
  /** The pieces of the reply: one, unless the turn was interrupted. */
  readonly pieces?: readonly GenerationPiece[];
  /** Duration of the policy call with waits and retries, in milliseconds. */
  readonly engineMs: number;
  /**
   * Part of `engineMs` that requests waited in the engine's queue, in milliseconds. Absent if the engine does not
   * report it.
   */
  readonly queueMs?: number;
  /**
   * Time from the end of sampling to the first action, in milliseconds: parsing the turn. Absent if the turn had no
   * action.
   */
  readonly parseMs?: number;
  /** Duration of the user's replies, in milliseconds. */
  readonly userMs?: number;
  /** Duration of the tool calls, in milliseconds. */
  readonly environmentMs: number;
}

/** Totals of an episode. JSON-able. */
export interface EpisodeCounts {
  readonly turnCount: number;
  readonly sampledTokenCount: number;
  /** Number of ids in all segments. */
  readonly tokenCount: number;
  /**
   * Number of calls that the environment performed. Calls of a tool named `user` are not counted, because they look
   * like words to the user.
   */
  readonly toolCallCount: number;
  readonly formatErrorCount: number;
  readonly attemptCounts: Readonly<Partial<Record<AttemptStatus, number>>>;
  /** Number of malformed calls that were repaired and performed. Absent instead of 0. */
  readonly repairedCallCount?: number;
  /** Number of turns with leaked markup. Absent instead of 0. */
  readonly leakedMarkupCount?: number;
  /** Number of turns with malformed reasoning. Absent instead of 0. */
  readonly malformedThinkingCount?: number;
}

/** The part of a fork's totals that comes from the shared turns, and counts in the original. JSON-able. */
export interface SharedCounts {
  readonly turnCount: number;
  readonly toolCallCount: number;
  readonly formatErrorCount: number;
  readonly userUsage: UserSpending;
}

/**
 * A sampled turn of an agent that keeps its conversations itself. Such an agent may continue from any earlier turn, so
 * its turns form a tree. JSON-able.
 */
export interface TreeTurn {
  /** Index in `tree` of the turn that this turn continues. Absent if it starts a conversation. */
  readonly parent?: number;
  /** The reason why the turn starts a conversation (see `docs/gateway.md`). Present only if `parent` is absent. */
  readonly cause?: string;
  /** Index in `turns`. Absent if no row trains the turn. */
  readonly turnIndex?: number;
  /** Number of prompt ids. */
  readonly promptTokenCount: number;
  readonly sampledTokenCount: number;
  /** Hash of the sampled ids (see `hashIds()`). */
  readonly outputHash: string;
  /** The last sampled id, if the turns that continue this one do not contain it. */
  readonly droppedStopId?: number;
  /** True if the agent received the complete turn, as far as the gateway knows. */
  readonly isDelivered: boolean;
  /** The model name in the agent's request. */
  readonly model: string;
  /** The constraint of the sampling, such as `json-schema`. */
  readonly constraint?: string;
  /** Remarks on the turn's place in the tree, if any. */
  readonly notes?: readonly string[];
  /** Names that the agent gave the conversation, if any. Two conversations may have the same names. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The role of the turn in the agent's work. */
  readonly role?: TurnRole;
  /**
   * A link to the earlier turn from which this turn follows. Present on the first turn of a conversation or a branch,
   * on summaries, and on turns that received the result of a sub-agent. Absent without evidence.
   */
  readonly from?: TurnLink;
  /**
   * The evidence that no later turn continued or used this turn, a summary or a reply to a repeated request. No row
   * trains such a turn. Absent for all other turns.
   */
  readonly rejected?: Rejection;
}

/** The complete record of a finished attempt. `episodes.jsonl` has it without `segments`. JSON-able. */
export interface Episode extends RolloutIdentity, RolloutEnd {
  /** Version of this format. */
  readonly format: 1;
  readonly environment: string;
  readonly split: string;
  readonly taskIndex: number;
  /** 0-based index of the group in the run. Absent if the episode was played without groups. */
  readonly groupIndex?: number;
  /** 0-based index in the group. */
  readonly sampleIndex: number;
  readonly seed: number;
  /** Number of the play, from 1. Another play follows a failed one. */
  readonly attempt: number;
  /** Details of the reward, from the environment. Absent if the episode was not scored. */
  readonly rewardDetails?: Readonly<Record<string, unknown>>;
  /** The named parts of the reward. Their weighted sum is the reward. Absent if the environment gives none. */
  readonly rewardComponents?: RewardComponents;
  /** The part of the reward that each of `turns` earned. Their sum is the reward. Absent if the environment gives none. */
  readonly turnRewards?: readonly number[];
  /** The environment's own verdict that the attempt reached its goal. Absent if the environment gives none. */
  readonly success?: boolean;
  /**
   * Failures that did not affect the episode, such as a world that could not be disposed of, if any. Always absent in
   * episodes that were played outside of a run.
   */
  readonly troubles?: readonly Failure[];
  readonly counts: EpisodeCounts;
  readonly userUsage: UserUsage;
  /**
   * The part of `counts` and `userUsage` from the turns before a fork. It counts in the original, so a run's totals
   * leave it out. Absent if the episode is not a fork.
   */
  readonly shared?: SharedCounts;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly messages: readonly Message[];
  /** The turns, in the order of the rows. */
  readonly turns: readonly TurnRecord[];
  /** The tree of turns in order of time, for agents that keep their conversations themselves. */
  readonly tree?: readonly TreeTurn[];
  /** The counts of the requests of an external agent in a run, without those that are zero or empty. */
  readonly gateway?: Partial<GatewayCounts>;
  /** The ids. They are written to `samples.jsonl`, not to `episodes.jsonl`. */
  readonly segments: readonly Segment[];
}

/** An episode without its ids. */
export type EpisodeStory = Omit<Episode, "segments">;
