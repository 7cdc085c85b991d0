import { namedGroupRules } from "./common-rules.ts";
import type { Exporter } from "../exporter.ts";

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
    ],
    // Without step-wise mode, SkyRL takes no such list.
    defaults: { is_last_step: true },
    rest: { rollout_metrics: {} },
  },
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "stop_reasons is `length`" },
    segments: { action: "keep", why: "`is_last_step`; needs generator.step_wise_trajectories" },
    environmentTail: { action: "cut", why: "SkyRL puts the reward on the last response token" },
  },
  toRecords: ({ rows, reward, groupId, repetition, episode }) =>
    rows.map(({ tokenIds, promptLength, lossMask, logprobs }, index) => ({
      prompt_token_ids: tokenIds.slice(0, promptLength),
      response_ids: tokenIds.slice(promptLength),
      rewards: reward,
      loss_masks: lossMask.slice(promptLength),
      rollout_logprobs: logprobs.slice(promptLength),
      stop_reasons: stopReasons[episode.outcome],
      trajectory_ids: { instance_id: groupId, repetition_id: repetition },
      is_last_step: index === rows.length - 1,
    })),
};
