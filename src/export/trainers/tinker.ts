import { namedGroupRules } from "./common-rules.ts";
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
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "no field for it" },
    segments: { action: "keep", why: "a datum each, all with the episode's advantage" },
  },
  toRecords: ({ rows, advantage, reward, groupId, rolloutId }) =>
    rows.map(({ tokenIds, lossMask, logprobs }) => {
      const mask = lossMask.slice(1);
      return {
        model_input: { chunks: [{ type: "encoded_text", tokens: tokenIds.slice(0, -1) }] },
        loss_fn_inputs: {
          target_tokens: tensor("int64", tokenIds.slice(1)),
          logprobs: tensor("float32", logprobs.slice(1)),
          advantages: tensor(
            "float32",
            mask.map((bit) => (bit === 1 ? advantage : 0)),
          ),
          mask: tensor("float32", mask),
        },
        reward,
        group: groupId,
        rollout: rolloutId,
      };
    }),
};

function tensor(dtype: "int64" | "float32", data: readonly number[]) {
  return { data, dtype, shape: [data.length] };
}
