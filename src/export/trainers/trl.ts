import { noColumns } from "../columns/column-rules.ts";
import { countedGroupRules } from "./common-rules.ts";
import { componentValues } from "./component-values.ts";
import type { Exporter, ReadyAttempt } from "../exporter.ts";

/**
 * Exports the results of a `rollout_func`, one row a line. TRL passes `env_reward` to the reward
 * functions.
 * **Source:** TRL 1.16.0, trl/trainer/grpo_trainer.py (`RolloutFunc`,
 * `_generate_and_score_completions`).
 */
export const trlExporter: Exporter = {
  trainer: "TRL's GRPOTrainer, rollout_func",
  isPerAttempt: true,
  layout: "lines",
  columns: noColumns,
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
    components: { action: "keep", why: "`env_reward_NAME`, which TRL passes to reward functions" },
    environmentTail: { action: "cut", why: "TRL would mark the row as truncated" },
  },
  toRecords: ({ rows, reward, groupId, rolloutId, episode }) =>
    rows.map(({ tokenIds, promptLength, logprobs, lossMask }) => ({
      prompt_ids: tokenIds.slice(0, promptLength),
      completion_ids: tokenIds.slice(promptLength),
      logprobs: logprobs.slice(promptLength),
      env_mask: lossMask.slice(promptLength),
      env_reward: reward,
      ...componentColumns(episode),
      group: groupId,
      rollout: rolloutId,
    })),
};

/** Returns the components' values, by the names that TRL passes to reward functions. */
function componentColumns(episode: ReadyAttempt["episode"]): object {
  const values = Object.entries(componentValues(episode) ?? {});
  return Object.fromEntries(values.map(([name, value]) => [`env_reward_${name}`, value]));
}
