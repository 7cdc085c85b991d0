import type { Message } from "../../message.ts";
import type { EpisodeStory } from "../folder/episode-row.ts";
import type { Sample } from "../../trajectory/sample.ts";

/**
 * One row as slime's `Sample.from_dict()` reads it and `Sample.to_dict()` writes it.
 *
 * **Source:** THUDM/slime, slime/utils/types.py (class Sample) at 624b824a.
 */
export interface SlimeSample {
  readonly group_index: number;
  readonly index: number;
  readonly rollout_id: number;
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  /** Prompt and response. */
  readonly tokens: readonly number[];
  readonly response: string;
  /** At least 1. */
  readonly response_length: number;
  /** For the response only, like the logprobs. */
  readonly loss_mask: readonly (0 | 1)[];
  readonly rollout_log_probs: readonly number[];
  readonly reward: number;
  readonly status: "completed" | "truncated";
  /** One entry per policy call. */
  readonly weight_versions: readonly string[];
  readonly remove_sample: false;
  /** Always `null`: the environment computes rewards, not a label. */
  readonly label: null;
  /** The rollout id: slime routes by it if its routing is consistent. */
  readonly session_id: string;
  /** Seconds that were spent on tools and the user. */
  readonly non_generation_time: number;
  /** Totals over the policy's calls; 0 cached tokens if the engine does not report them. */
  readonly prefix_cache_info: {
    readonly cached_tokens: number;
    readonly total_prompt_tokens: number;
  };
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The indexes of a rollout in slime's batch. */
export interface SlimePlace {
  /** 0-based over the prompts. */
  readonly groupIndex: number;
  /** 0-based over all rollouts. */
  readonly index: number;
}

/** One attempt of a group, with its row and its indexes. */
export interface SlimeMember {
  /** Absent if the attempt has not finished. */
  readonly episode: EpisodeStory | undefined;
  readonly samples: readonly Sample[];
  readonly place: SlimePlace;
}

/** The reason for which a group is left out. */
export type SlimeOmission =
  /** An attempt has not finished. */
  | "unfinished"
  /** An attempt has no reward. */
  | "unscored"
  /** An attempt has several rows (`--history split`). */
  | "split"
  /** An attempt has no sampled token. Its reward would still change the baseline of the others. */
  | "no-response";

/**
 * Returns the slime rows of a group, one per attempt, or the reason to leave the group out.
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
  for (const { episode, samples } of members) {
    if (episode === undefined) return { leftOut: "unfinished" };
    if (episode.reward === undefined) return { leftOut: "unscored" };
    const [sample, ...more] = samples;
    if (more.length > 0) return { leftOut: "split" };
    if (sample === undefined || !sample.lossMask.includes(1)) return { leftOut: "no-response" };
  }
  return {
    rows: members.map(({ episode, samples, place }) => toSlimeRow(episode!, samples[0]!, place)),
  };
}

/** Returns the slime row of a scored attempt with one row. */
export function toSlimeRow(episode: EpisodeStory, sample: Sample, place: SlimePlace): SlimeSample {
  const { promptLength, turns, policyVersions } = sample;
  // The turns before a fork belong to another attempt: here, they are part of the prompt.
  const played = episode.turns.slice(episode.forkedFrom?.turnIndex ?? 0);
  const sumOf = (read: (turn: EpisodeStory["turns"][number]) => number): number =>
    played.reduce((sum, turn) => sum + read(turn), 0);
  return {
    group_index: place.groupIndex,
    index: place.index,
    rollout_id: place.index,
    prompt: openingMessages(episode.messages),
    tokens: sample.tokenIds,
    response: played.map(({ text }) => text).join(""),
    response_length: sample.tokenIds.length - promptLength,
    loss_mask: sample.lossMask.slice(promptLength),
    rollout_log_probs: sample.logprobs.slice(promptLength),
    reward: episode.reward!,
    status: episode.outcome === "truncated" ? "truncated" : "completed",
    weight_versions: turns
      .filter(({ start, end }) => end > start)
      .map(({ end }) => policyVersions[end - 1] ?? ""),
    remove_sample: false,
    label: null,
    session_id: episode.rolloutId,
    non_generation_time: sumOf(({ environmentMs }) => environmentMs) / 1000,
    prefix_cache_info: {
      cached_tokens: sumOf(({ cachedTokenCount = 0 }) => cachedTokenCount),
      total_prompt_tokens: sumOf(({ promptTokenCount }) => promptTokenCount),
    },
    metadata: {
      ...sample.metadata,
      rollout: episode.rolloutId,
      task: episode.taskId,
      source_name: episode.environment,
      stop_reason: episode.stopReason,
      user_usage: episode.userUsage,
      ...(episode.rewardDetails !== undefined && { reward_details: episode.rewardDetails }),
    },
  };
}

function openingMessages(messages: readonly Message[]) {
  const firstAnswer = messages.findIndex((message) => message.role === "assistant");
  return messages
    .slice(0, firstAnswer < 0 ? undefined : firstAnswer)
    .map(({ role, content }) => ({ role, content }));
}
