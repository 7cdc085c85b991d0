import type { Episode } from "../episode/episode.ts";
import type { Message } from "../message.ts";
import type { Sample } from "../trajectory/sample.ts";

/**
 * One row as slime's `Sample.from_dict()` reads it and `Sample.to_dict()` writes it.
 *
 * **Source:** THUDM/slime, slime/utils/types.py (class Sample) at 624b824a.
 */
export interface SlimeSample {
  readonly group_index: number;
  readonly index: number;
  /** Shared by the rows of one rollout: slime averages the loss over them. */
  readonly rollout_id: number;
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  /** Prompt and response. */
  readonly tokens: readonly number[];
  readonly response: string;
  readonly response_length: number;
  /** Over the response only, as are the logprobs. */
  readonly loss_mask: readonly (0 | 1)[];
  readonly rollout_log_probs: readonly number[];
  /** `null` where nothing scored the episode. */
  readonly reward: number | null;
  readonly status: "completed" | "truncated" | "failed";
  /** One entry a policy call. */
  readonly weight_versions: readonly string[];
  /** True where the trainer must not learn from the row. */
  readonly remove_sample: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Where a rollout stands in slime's batch. */
export interface SlimePlace {
  /** 0-based over the prompts. */
  readonly groupIndex: number;
  /** 0-based over all rollouts. */
  readonly index: number;
}

/** slime asserts a response, so a rollout that recorded nothing becomes its own known placeholder. */
const placeholder = {
  tokens: [0, 0],
  response_length: 1,
  loss_mask: [0],
  rollout_log_probs: [0],
} as const;

/** The slime rows of an episode: one a segment, or a masked placeholder where nothing was recorded. */
export function toSlimeSamples(
  episode: Episode,
  samples: readonly Sample[],
  place: SlimePlace,
): readonly SlimeSample[] {
  const shared = {
    group_index: place.groupIndex,
    index: place.index,
    rollout_id: place.index,
    prompt: openingMessages(episode.messages),
    reward: episode.reward ?? null,
    status: episode.outcome,
    remove_sample: episode.reward === undefined,
  };
  if (samples.length === 0) {
    return [
      { ...shared, ...placeholder, response: "", weight_versions: [], metadata: about(episode) },
    ];
  }
  return samples.map((sample) => ({
    ...shared,
    tokens: sample.tokenIds,
    response: responseText(episode, sample),
    response_length: sample.tokenIds.length - sample.promptLength,
    loss_mask: sample.lossMask.slice(sample.promptLength),
    rollout_log_probs: sample.logprobs.slice(sample.promptLength),
    weight_versions: sample.turns
      .filter(({ start, end }) => end > start)
      .map(({ end }) => sample.policyVersions[end - 1] ?? ""),
    metadata: { ...sample.metadata, ...about(episode), segment: sample.segment },
  }));
}

function openingMessages(messages: readonly Message[]) {
  const firstAnswer = messages.findIndex((message) => message.role === "assistant");
  return messages
    .slice(0, firstAnswer < 0 ? undefined : firstAnswer)
    .map(({ role, content }) => ({ role, content }));
}

function responseText(episode: Episode, sample: Sample): string {
  const own = new Set(sample.turns.map(({ turnIndex }) => turnIndex));
  return episode.turns
    .filter(({ turnIndex }) => own.has(turnIndex))
    .map(({ text }) => text)
    .join("");
}

function about(episode: Episode): Record<string, unknown> {
  return {
    rollout: episode.rolloutId,
    task: episode.taskId,
    stop_reason: episode.stopReason,
    ...(episode.failure === undefined ? {} : { failure: episode.failure }),
  };
}
