import { verlColumns } from "../columns/verl-columns.ts";
import { namedGroupRules } from "./common-rules.ts";
import { componentValues } from "./component-values.ts";
import { versionRange } from "./version-range.ts";
import type { Exporter, ReadyRow } from "../exporter.ts";

/**
 * Exports what `AgentLoopBase.run()` returns, one attempt a line: the fields of an
 * `AgentLoopOutput`, or `outputs` with a list of them if the attempt has several rows.
 *
 * **Source:** verl 0.9.1, verl/experimental/agent_loop/agent_loop.py (`AgentLoopOutput.as_dict()`)
 * and verl/trainer/ppo/v1/agent_loop_tq.py (`_agent_loop_postprocess`), which reads
 * `reward_extra_info` of the last output of a list.
 */
export const verlExporter: Exporter = {
  trainer: "verl, AgentLoopOutput",
  isPerAttempt: true,
  layout: "lines",
  columns: verlColumns,
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "`extra_fields.status`" },
    segments: { action: "keep", why: "`outputs` lists them" },
    mixedVersions: {
      action: "keep",
      why: "`extra_fields.min_global_steps` and `max_global_steps`",
    },
    unnamedVersions: { action: "refuse", why: "verl's global steps are whole numbers" },
    components: { action: "keep", why: "`extra_fields.reward_extra_info`, which verl logs" },
    environmentTail: { action: "cut", why: "verl puts the reward on the last response token" },
  },
  toRecords({ rows, reward, groupId, rolloutId, episode }) {
    const components = componentValues(episode);
    const isList = rows.length > 1;
    const outputs = rows.map((row) => ({
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
        ...(isList || components !== undefined ? { reward_extra_info: components ?? {} } : {}),
      },
    }));
    return outputs.length === 1 ? outputs : [{ outputs }];
  },
};

function globalSteps(row: ReadyRow) {
  // The rules refuse other versions than whole numbers.
  const { least, most } = versionRange([row])!;
  return { min_global_steps: least, max_global_steps: most };
}
