import { noColumns } from "../columns/column-rules.ts";
import { countedGroupRules } from "./common-rules.ts";
import { componentValues } from "./component-values.ts";
import { longestRow } from "./longest-row.ts";
import { sampledTurns } from "./sampled-turns.ts";
import type { Exporter } from "../exporter.ts";

/**
 * Exports the results of `AgentExecutor.execute()`, one attempt a line. Logprobs cover the complete row, because
 * OpenRLHF itself drops the first one.
 *
 * **Source:** openrlhf 0.11.2, openrlhf/trainer/ppo_utils/samples_generator.py (`_process_response_into_experience`).
 */
export const openrlhfExporter: Exporter = {
  trainer: "OpenRLHF, AgentExecutor",
  layout: "lines",
  columns: noColumns,
  rules: {
    ...countedGroupRules,
    truncated: { action: "keep", why: "`truncated` is true" },
    components: { action: "keep", why: "`extra_logs`, which OpenRLHF logs" },
    segments: { action: "one-row", why: "execute() returns one row: the longest is exported" },
  },
  chooseRow: longestRow,
  toRecords: ({ rows, reward, groupId, episode }) =>
    rows.map((row) => ({
      prompt: groupId,
      label: episode.taskId,
      observation_tokens: row.tokenIds,
      action_ranges: sampledTurns(row).map(({ start, end }) => [start, end]),
      rollout_log_probs: row.logprobs,
      reward,
      scores: reward,
      truncated: episode.outcome === "truncated",
      extra_logs: componentValues(episode) ?? {},
      images: null,
      mm_train_inputs: null,
    })),
};
