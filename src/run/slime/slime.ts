import type { Message } from "../../message.ts";
import type { EpisodeStory } from "../folder/episode-row.ts";
import type { Sample } from "../../trajectory/sample.ts";

/**
 * One row as slime's `Sample.from_dict()` reads it and `Sample.to_dict()` writes it.
 *
 * **Source:** THUDM/slime, slime/utils/types.py (class Sample) at 624b824a.
 */
export type SlimeSample = SlimeRow<readonly number[], readonly (0 | 1)[]>;

/** A slime row with its long lists in another form, such as JSON. */
export interface SlimeRow<List, Bits = List> {
  readonly group_index: number;
  /** The attempt's index. */
  readonly index: number;
  /** The attempt's index, on each of its rows. slime counts an attempt once by it. */
  readonly rollout_id: number;
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  /** Prompt and response. */
  readonly tokens: List;
  readonly response: string;
  /** At least 1. */
  readonly response_length: number;
  /** The mask of the response only, like the logprobs. */
  readonly loss_mask: Bits;
  readonly rollout_log_probs: List;
  readonly reward: number;
  readonly status: "completed" | "truncated";
  /** One entry per policy call of the row. */
  readonly weight_versions: readonly string[];
  readonly remove_sample: false;
  /** Always `null`: the environment computes rewards, not a label. */
  readonly label: null;
  /** The rollout id. With consistent hashing, slime's router sends requests with one id to one server. */
  readonly session_id: string;
  /** Seconds that were spent on tools and the user after the row's policy calls. */
  readonly non_generation_time: number;
  /** Totals over the row's policy calls; 0 cached tokens if the engine does not report them. */
  readonly prefix_cache_info: {
    readonly cached_tokens: number;
    readonly total_prompt_tokens: number;
  };
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The indexes of a rollout in slime's batch. */
export interface SlimePlace {
  /** 0-based index over the prompts. */
  readonly groupIndex: number;
  /** 0-based index over all rollouts. */
  readonly index: number;
}

/** One attempt of a group, with its rows and its indexes. */
export interface SlimeMember<Row = Sample> {
  /** The episode. Absent if the attempt has not finished. */
  readonly episode: EpisodeStory | undefined;
  readonly samples: readonly Row[];
  readonly place: SlimePlace;
}

/** The reason for which a group is left out. */
export type SlimeOmission =
  /** An attempt has not finished. */
  | "unfinished"
  /** An attempt has no reward. */
  | "unscored"
  /** An attempt has no sampled token, so it has no row. slime would compute the group's baseline without its reward. */
  | "no-response";

/**
 * Returns the slime rows of a group, those of an attempt one after the other, or the reason to leave
 * the group out.
 *
 * slime's reward step assumes groups of one size, in the order of the batch, and builds a tensor of all rewards before
 * it filters rows. A row without a reward stops it. A group with too few or too many rows makes it silently normalize
 * the wrong rewards together. So a group is written completely or not at all, as in slime's own rollouts, which give
 * back a group with an aborted attempt.
 *
 * **Source:** THUDM/slime, slime/ray/rollout.py (`_post_process_rewards`) and slime/rollout/sglang_rollout.py at
 * 624b824a.
 */
export function toSlimeGroup(
  members: readonly SlimeMember[],
): { readonly rows: readonly SlimeSample[] } | { readonly leftOut: SlimeOmission } {
  const leftOut = findSlimeOmission(members, ({ lossMask }) => lossMask.includes(1));
  if (leftOut !== undefined) return { leftOut };
  return {
    rows: members.flatMap(({ episode, samples, place }) =>
      samples
        .filter(({ lossMask }) => lossMask.includes(1))
        .map((sample) => toSlimeRow(episode!, sample, place)),
    ),
  };
}

/**
 * Returns the reason to leave a group out; `undefined` if slime can use it.
 *
 * @param isSampled - True if the policy sampled a token of the row.
 */
export function findSlimeOmission<Row>(
  members: readonly SlimeMember<Row>[],
  isSampled: (row: Row) => boolean,
): SlimeOmission | undefined {
  for (const { episode, samples } of members) {
    if (episode === undefined) return "unfinished";
    if (episode.reward === undefined) return "unscored";
    if (!samples.some((row) => isSampled(row))) return "no-response";
  }
  return undefined;
}

/** Returns the slime row of a training row of a scored attempt. */
export function toSlimeRow(episode: EpisodeStory, sample: Sample, place: SlimePlace): SlimeSample {
  const { promptLength, policyVersions } = sample;
  return fillSlimeRow(episode, place, {
    ...sample,
    tokenCount: sample.tokenIds.length,
    lossMask: sample.lossMask.slice(promptLength),
    logprobs: sample.logprobs.slice(promptLength),
    versionsAt: (indexes) => indexes.map((index) => policyVersions[index] ?? ""),
  });
}

/** The facts about a training row that its slime row contains. */
export interface SlimeFacts<List, Bits = List> extends Pick<
  Sample,
  "promptLength" | "turns" | "metadata"
> {
  readonly tokenCount: number;
  readonly tokenIds: List;
  /** The mask of the items after the prompt. */
  readonly lossMask: Bits;
  /** The logprobs of the items after the prompt. */
  readonly logprobs: List;
  /** Returns the policy versions of the ids at these indexes, which ascend. */
  readonly versionsAt: (indexes: readonly number[]) => readonly string[];
}

/** Returns the slime row of a scored attempt from the facts about a training row. */
export function fillSlimeRow<List, Bits>(
  episode: EpisodeStory,
  place: SlimePlace,
  row: SlimeFacts<List, Bits>,
): SlimeRow<List, Bits> {
  const played = playedIn(row, episode);
  const sumOf = (read: (turn: EpisodeStory["turns"][number]) => number): number =>
    played.reduce((sum, turn) => sum + read(turn), 0);
  const sampled = row.turns.filter(({ start, end }) => end > start);
  return {
    group_index: place.groupIndex,
    index: place.index,
    rollout_id: place.index,
    prompt: openingMessages(episode.messages),
    tokens: row.tokenIds,
    response: played.map(({ text }) => text).join(""),
    response_length: row.tokenCount - row.promptLength,
    loss_mask: row.lossMask,
    rollout_log_probs: row.logprobs,
    reward: episode.reward!,
    status: episode.outcome === "truncated" ? "truncated" : "completed",
    weight_versions: row.versionsAt(sampled.map(({ end }) => end - 1)),
    remove_sample: false,
    label: null,
    session_id: episode.rolloutId,
    non_generation_time: sumOf(({ environmentMs }) => environmentMs) / 1000,
    prefix_cache_info: {
      cached_tokens: sumOf(({ cachedTokenCount = 0 }) => cachedTokenCount),
      total_prompt_tokens: sumOf(({ promptTokenCount }) => promptTokenCount),
    },
    metadata: {
      ...row.metadata,
      rollout: episode.rolloutId,
      task: episode.taskId,
      source_name: episode.environment,
      stop_reason: episode.stopReason,
      user_usage: episode.userUsage,
      ...(episode.rewardDetails !== undefined && { reward_details: episode.rewardDetails }),
    },
  };
}

/** Returns the turns that a row trains, or all turns of an attempt with one row. */
function playedIn(
  { metadata, turns: spans }: Pick<Sample, "metadata" | "turns">,
  { turns, forkedFrom }: EpisodeStory,
): EpisodeStory["turns"] {
  if ("lineage" in metadata) return spans.flatMap(({ turnIndex }) => turns[turnIndex] ?? []);
  // The turns before a fork belong to another attempt: here, they are part of the prompt.
  return turns.slice(forkedFrom?.turnIndex ?? 0);
}

function openingMessages(messages: readonly Message[]) {
  const firstAnswer = messages.findIndex((message) => message.role === "assistant");
  return messages
    .slice(0, firstAnswer < 0 ? undefined : firstAnswer)
    .map(({ role, content }) => ({ role, content }));
}
