import { countedGroupRules } from "./common-rules.ts";
import type { Exporter } from "../exporter.ts";

/**
 * Exports the results of a `rollout_func`, one row a line. TRL passes `env_reward` to the reward
 * functions.
 * **Source:** TRL 1.16.0, trl/trainer/grpo_trainer.py (`RolloutFunc`,
 * `_generate_and_score_completions`).
 */
export const trlExporter: Exporter = {
  trainer: "TRL's GRPOTrainer, rollout_func",
  layout: "lines",
  rules: {
    ...countedGroupRules,
    truncated: {
      action: "keep",
      why: "no field: TRL marks a row as truncated if its last id is neither eos nor pad",
    },
    empty: { action: "leave-out-group", why: "TRL fails on an empty completion" },
    segments: {
      action: "leave-out-group",
      why: "a rollout_func returns one row a prompt; the live shim hands over all rows",
    },
    environmentTail: { action: "cut", why: "TRL would mark the row as truncated" },
  },
  toRecords: ({ rows, reward, groupId, rolloutId }) =>
    rows.map(({ tokenIds, promptLength, logprobs, lossMask }) => ({
      prompt_ids: tokenIds.slice(0, promptLength),
      completion_ids: tokenIds.slice(promptLength),
      logprobs: logprobs.slice(promptLength),
      env_mask: lossMask.slice(promptLength),
      env_reward: reward,
      group: groupId,
      rollout: rolloutId,
    })),
};
