import type { AttemptPlace } from "../agent/turn-form.ts";
import type { AttemptStatus } from "../parser/tool-call-parser.ts";
import type { DiscardedSampling, GenerationPiece } from "../engine/engine.ts";
import type { Failure } from "../errors.ts";
import type { Message } from "../message.ts";
import type { RolloutEnd, RolloutIdentity } from "../trajectory/sample.ts";
import type { Segment } from "../trajectory/trajectory-recorder.ts";
import type { UserSpending, UserUsage } from "../user/user.ts";

/** One tool call or reply that a turn caused. JSON-able. */
export interface TurnStep {
  /** The tool's name, or `user`. */
  readonly source: string;
  readonly callId: string;
  /** The arguments that the tool was called with, as JSON; absent for words, refusals and in format 1. */
  readonly arguments?: string;
  readonly observation: string;
  /**
   * `acted`: the environment performed it; `refused`: it never reached the environment, and the
   * policy was told so; `ignored`: nor was the policy told, and `observation` is empty.
   */
  readonly result: "acted" | "refused" | "ignored";
  readonly isError?: boolean;
  /** The call was malformed; what was mended of it was performed. */
  readonly repaired?: true;
}

/** One attempt to call a tool. JSON-able. */
export interface AttemptRecord extends AttemptPlace {
  /** Place among the ids that the turn sampled, end exclusive. */
  readonly tokenSpan: readonly [start: number, end: number];
}

/** What there is to say about a turn's form. JSON-able. */
export interface FormatFacts {
  /** Every call is in order, no markup leaks, and the reasoning is written as it should be. */
  readonly formatOk: boolean;
  /** The first attempt that was meant as a call and is none; absent where there is none. */
  readonly firstError?: Pick<AttemptRecord, "status" | "span" | "tokenSpan">;
  /** Markup of calls or reasoning is left in what others are shown of the turn. */
  readonly leakedMarkup: boolean;
  /** The reasoning is opened or closed too often, or not closed in a turn that was not cut off. */
  readonly thinkingMalformed: boolean;
}

/** One policy call and what it caused. JSON-able. */
export interface TurnRecord {
  readonly turnIndex: number;
  /** The sampled text, control tokens spelled out, without the closing stop token. */
  readonly text: string;
  /** The reasoning that was cut off before the text was read. */
  readonly reasoning?: string;
  readonly finish: "stop" | "length";
  readonly sampledTokenCount: number;
  readonly promptTokenCount: number;
  readonly cachedTokenCount?: number;
  readonly attemptCounts: Readonly<Partial<Record<AttemptStatus, number>>>;
  /**
   * Every attempt to call a tool, in the order of the text; spans count from its start. Absent where
   * there is none.
   */
  readonly attempts?: readonly AttemptRecord[];
  /** Absent for agents whose turns have no markup. */
  readonly format?: FormatFacts;
  readonly steps: readonly TurnStep[];
  /** Samplings that no sample carries; absent in the ordinary case. */
  readonly discarded?: readonly DiscardedSampling[];
  /** How often the engine interrupted and resumed the turn; absent where it did not. */
  readonly interruptionCount?: number;
  /** How the engine brought it: one piece, unless it was interrupted. Absent in rows of format 1. */
  readonly pieces?: readonly GenerationPiece[];
  /** What the policy call took, with its waits and repetitions, milliseconds. */
  readonly engineMs: number;
  /** Of it, what the requests waited in the engine until it took them up; absent where it does not say. */
  readonly queueMs?: number;
  /**
   * From the end of sampling until the first call or words were on their way, milliseconds: reading the
   * turn. Absent where nothing was performed, and in rows of format 1.
   */
  readonly parseMs?: number;
  /** What the user's replies took, milliseconds. Absent in rows of format 1. */
  readonly userMs?: number;
  /** What the tools took, milliseconds; in rows of format 1 all that came after sampling. */
  readonly environmentMs: number;
}

/** Sums over an episode. JSON-able. */
export interface EpisodeCounts {
  readonly turnCount: number;
  readonly sampledTokenCount: number;
  /** Ids over all segments. */
  readonly tokenCount: number;
  /** Calls that the environment performed; those of a tool named `user` look like words to them, and do not count. */
  readonly toolCallCount: number;
  readonly formatErrorCount: number;
  readonly attemptCounts: Readonly<Partial<Record<AttemptStatus, number>>>;
  /** Malformed calls that were mended and performed; absent where there are none. */
  readonly repairedCallCount?: number;
  /** Turns in which markup leaked; absent where there are none. */
  readonly leakedMarkupCount?: number;
  /** Turns with malformed reasoning; absent where there are none. */
  readonly malformedThinkingCount?: number;
}

/** What of an episode's sums is another's as well, of which it is a fork. JSON-able. */
export interface SharedCounts {
  readonly turnCount: number;
  readonly toolCallCount: number;
  readonly formatErrorCount: number;
  readonly userUsage: UserSpending;
}

/**
 * A sampled turn of an agent that keeps its conversations itself, and what it continued. Such an agent
 * may go on from any earlier turn, so that its turns are a tree. JSON-able.
 */
export interface TreeTurn {
  /** Place in `tree` of the turn that it continues, before its own; absent where it continues none. */
  readonly parent?: number;
  /** Why it continues none (see `docs/gateway.md`); present exactly where `parent` is absent. */
  readonly cause?: string;
  /** Its place in `turns`; absent where no row trains it. */
  readonly turnIndex?: number;
  /** All ids that it was sampled behind. */
  readonly promptTokenCount: number;
  readonly sampledTokenCount: number;
  /** Hash of the sampled ids (see `hashIds()`). */
  readonly outputHash: string;
  /** The last sampled id, where the turns that continue this one were sampled without it. */
  readonly droppedStopId?: number;
  /** Whether the agent had it whole, as far as anybody knows. */
  readonly isDelivered: boolean;
  /** The model's name as the agent spelled it. */
  readonly model: string;
  /** What the engine held the turn to, such as `json-schema`: it was not sampled freely. */
  readonly constraint?: string;
  /** What was noticed as its place was found; absent where there was nothing. */
  readonly notes?: readonly string[];
  /** Names that the agent gave the conversation, never an identity; absent where it gave none. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** One attempt at a task, finished: the whole story, as `episodes.jsonl` holds it. JSON-able. */
export interface Episode extends RolloutIdentity, RolloutEnd {
  /** Version of this format. */
  readonly format: 1;
  readonly environment: string;
  readonly split: string;
  readonly taskIndex: number;
  /** 0-based place of the group within the run; absent if the program that played the episode counts no groups. */
  readonly groupIndex?: number;
  /** 0-based place within the group. */
  readonly sampleIndex: number;
  readonly seed: number;
  /** The number of this play of the attempt, from 1. A play that failed is followed by another. */
  readonly attempt: number;
  /** How the reward came about, in the environment's words; absent where nothing scored. */
  readonly rewardDetails?: Readonly<Record<string, unknown>>;
  /**
   * What went wrong and cost it nothing, such as a world that could not be disposed of; absent where nothing
   * did, and in episodes that no run played.
   */
  readonly troubles?: readonly Failure[];
  readonly counts: EpisodeCounts;
  readonly userUsage: UserUsage;
  /**
   * What of `counts` and `userUsage` comes before the turn with which it parted from another, whose own it is:
   * a run's sums leave it out. Absent if the episode is no fork.
   */
  readonly shared?: SharedCounts;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly messages: readonly Message[];
  /** Row by row, where there are several. */
  readonly turns: readonly TurnRecord[];
  /** How the turns hang together, where an agent keeps its conversations itself, in order of time. */
  readonly tree?: readonly TreeTurn[];
  /** The ids; written to `samples.jsonl` rather than to `episodes.jsonl`. */
  readonly segments: readonly Segment[];
}

/** An episode without its ids. */
export type EpisodeStory = Omit<Episode, "segments">;
