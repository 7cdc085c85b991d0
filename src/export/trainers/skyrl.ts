import { skyrlColumns } from "../columns/skyrl-columns.ts";
import { namedGroupRules } from "./common-rules.ts";
import type { Exporter, ReadyAttempt, ReadyRow } from "../exporter.ts";

const stopReasons = {
  completed: "stop",
  truncated: "length",
  failed: "abort",
  aborted: "abort",
} as const;

/**
 * Exports a `GeneratorOutput`: one object with lists over the rows. If an attempt has several rows,
 * `is_last_step` is true at the last row of each attempt, as SkyRL's step-wise mode requires.
 *
 * **Source:** skyrl 0.4.0, skyrl/train/generators/base.py and skyrl/train/utils/trainer_utils.py
 * (`validate_generator_output`).
 */
export const skyrlExporter: Exporter = {
  trainer: "SkyRL, GeneratorOutput",
  columns: skyrlColumns,
  layout: {
    columns: [
      "prompt_token_ids",
      "response_ids",
      "rewards",
      "loss_masks",
      "rollout_logprobs",
      "stop_reasons",
      "trajectory_ids",
      "is_last_step",
      "rollout_expert_indices",
      "rollout_sample_support",
    ],
    // Without step-wise mode, and without side columns, SkyRL takes no such lists.
    defaults: { is_last_step: true, rollout_expert_indices: null, rollout_sample_support: null },
    rest: { rollout_metrics: {} },
  },
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "`stop_reasons` is `length`" },
    segments: { action: "keep", why: "`is_last_step`; needs generator.step_wise_trajectories" },
    turnRewards: {
      action: "drop",
      why: "SkyRL takes one reward for an attempt, unless rewards of turns are requested and the attempt has one row",
    },
    environmentTail: { action: "cut", why: "SkyRL puts the reward on the last response token" },
  },
  takesTurnRewards: true,
  toRecords: ({ rows, reward, groupId, repetition, episode }, { hasTurnRewards = false }) =>
    rows.map((row, index) => ({
      prompt_token_ids: row.tokenIds.slice(0, row.promptLength),
      response_ids: row.tokenIds.slice(row.promptLength),
      rewards: hasTurnRewards ? tokenRewards(row, { reward, episode, rows }) : reward,
      loss_masks: row.lossMask.slice(row.promptLength),
      rollout_logprobs: row.logprobs.slice(row.promptLength),
      stop_reasons: stopReasons[episode.outcome],
      trajectory_ids: { instance_id: groupId, repetition_id: repetition },
      is_last_step: index === rows.length - 1,
      rollout_expert_indices: null,
      rollout_sample_support: null,
    })),
};

/**
 * Returns a reward for each token of the response. If turns have rewards and the attempt has one row, each turn's
 * reward is at the turn's last token. Otherwise the attempt's reward is at the last token.
 */
function tokenRewards(
  { tokenIds, promptLength, turns }: ReadyRow,
  { reward, episode: { turnRewards }, rows }: Pick<ReadyAttempt, "reward" | "episode" | "rows">,
): readonly number[] {
  const rewards = new Array<number>(tokenIds.length - promptLength).fill(0);
  if (turnRewards === undefined || rows.length > 1) {
    rewards[rewards.length - 1] = reward;
    return rewards;
  }
  // The reward of a turn without a token goes to the turn before it, or to the first one.
  const sampled = turns.filter(({ start, end }) => end > start);
  const ends = new Map(sampled.map(({ turnIndex, end }) => [turnIndex, end]));
  let end = sampled[0]!.end;
  for (const [turnIndex, own] of turnRewards.entries()) {
    end = ends.get(turnIndex) ?? end;
    rewards[end - 1 - promptLength]! += own;
  }
  return rewards;
}
