import { noColumns } from "../columns/column-rules.ts";
import { namedGroupRules } from "./common-rules.ts";
import { lineageMember } from "./lineage-in.ts";
import { tokenAdvantages } from "./token-advantages.ts";
import type { Exporter } from "../exporter.ts";

/**
 * Exports a `Datum` for `forward_backward(..., "importance_sampling")`, one row a line. Inputs lack
 * the last token; targets, logprobs, advantages and mask lack the first. An advantage is the reward
 * minus the group's mean, and 0 at each token with mask 0.
 * **Source:** tinker-cookbook 0.6.1, tinker_cookbook/rl/data_processing.py.
 */
export const tinkerExporter: Exporter = {
  trainer: "tinker, Datum",
  layout: "lines",
  columns: noColumns,
  hasTurnAdvantages: true,
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "no field for it" },
    segments: { action: "keep", why: "each becomes a datum, with the attempt's advantage" },
    turnRewards: {
      action: "drop",
      why: "an attempt has one advantage, unless a discount is given",
    },
  },
  toRecords: (attempt) =>
    attempt.rows.map((row) => {
      const { tokenIds, logprobs } = row;
      const mask = row.lossMask.slice(1);
      return {
        model_input: { chunks: [{ type: "encoded_text", tokens: tokenIds.slice(0, -1) }] },
        loss_fn_inputs: {
          target_tokens: tensor("int64", tokenIds.slice(1)),
          logprobs: tensor("float32", logprobs.slice(1)),
          advantages: tensor("float32", tokenAdvantages(row, attempt).slice(1)),
          mask: tensor("float32", mask),
        },
        reward: attempt.reward,
        group: attempt.groupId,
        rollout: attempt.rolloutId,
        ...lineageMember(row),
      };
    }),
};

function tensor(dtype: "int64" | "float32", data: readonly number[]) {
  return { data, dtype, shape: [data.length] };
}
