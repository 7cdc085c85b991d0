import { noColumns } from "../columns/column-rules.ts";
import { countedGroupRules } from "./common-rules.ts";
import { lineageMember } from "./lineage-in.ts";
import { sampledTurns } from "./sampled-turns.ts";
import type { Exporter, ReadyRow } from "../exporter.ts";

/**
 * Exports the tensors of a `RolloutWorkflow`, without their batch dimension, one row a line. Mask and logprobs cover
 * the complete row, because the trainer shifts them itself. If an attempt has several rows, each has the attempt's id
 * as `rollout`, and its own `lineage`.
 *
 * **Source:** areal 1.0.4, areal/trainer/ppo/actor.py (`_compute_advantages`).
 */
export const arealExporter: Exporter = {
  trainer: "AReaL, RolloutWorkflow",
  layout: "lines",
  columns: noColumns,
  rules: {
    ...countedGroupRules,
    truncated: { action: "keep", why: "no field for it" },
    segments: { action: "keep", why: "`rollout`; needs the workflow for groups" },
    mixedVersions: { action: "keep", why: "`versions` has one entry for each token" },
    unnamedVersions: { action: "refuse", why: "AReaL's `versions` are whole numbers" },
    environmentTail: {
      action: "cut",
      why: "AReaL loses the reward of a row if its last token is not trained",
    },
  },
  toRecords: ({ rows, reward, groupId, rolloutId }) =>
    rows.map((row) => ({
      input_ids: row.tokenIds,
      loss_mask: row.lossMask,
      logprobs: row.logprobs,
      versions: row.policyVersions.map((version, index) =>
        row.lossMask[index] === 1 ? Number(version) : -1,
      ),
      turn_ids: turnIds(row),
      rewards: reward,
      group: groupId,
      ...(rows.length > 1 && { rollout: rolloutId }),
      ...lineageMember(row),
    })),
};

function turnIds(row: ReadyRow): readonly number[] {
  const ids = new Array<number>(row.tokenIds.length).fill(-1);
  for (const { start, end } of sampledTurns(row))
    ids.fill(
      row.turns.findIndex((turn) => turn.start === start && turn.end === end),
      start,
      end,
    );
  return ids;
}
