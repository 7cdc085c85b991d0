import { namedGroupRules } from "./common-rules.ts";
import type { Exporter, ReadyRow } from "./exporter.ts";

/**
 * Exports the fields of an `AgentLoopOutput`, one row a line.
 *
 * **Source:** verl 0.9.1, verl/experimental/agent_loop/agent_loop.py (`AgentLoopOutput.as_dict()`).
 */
export const verlExporter: Exporter = {
  trainer: "verl, AgentLoopOutput",
  layout: "lines",
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "extra_fields.status" },
    segments: {
      action: "leave-out",
      why: "the mean over a uid would count the episode once a row",
    },
    mixedVersions: { action: "keep", why: "extra_fields.min_global_steps and max_global_steps" },
    unnamedVersions: { action: "refuse", why: "global steps are whole numbers" },
    environmentTail: { action: "cut", why: "verl puts the reward on the last response token" },
  },
  toRecords: ({ rows, reward, groupId, rolloutId, episode }) =>
    rows.map((row) => ({
      prompt_ids: row.tokenIds.slice(0, row.promptLength),
      response_ids: row.tokenIds.slice(row.promptLength),
      response_mask: row.lossMask.slice(row.promptLength),
      response_logprobs: row.logprobs.slice(row.promptLength),
      reward_score: reward,
      // verl counts the turns of both sides, and the user has the first one.
      num_turns: 2 * row.turns.length,
      metrics: {},
      extra_fields: {
        uid: groupId,
        rollout_id: rolloutId,
        status: episode.outcome,
        stop_reason: episode.stopReason,
        ...globalSteps(row),
      },
    })),
};

function globalSteps({ policyVersions, lossMask }: ReadyRow) {
  let [least, most] = [Infinity, -Infinity];
  for (const [index, version] of policyVersions.entries()) {
    if (lossMask[index] === 0) continue;
    least = Math.min(least, Number(version));
    most = Math.max(most, Number(version));
  }
  return { min_global_steps: least, max_global_steps: most };
}
