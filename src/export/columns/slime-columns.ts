import type { ExportRecord } from "../export-record.ts";
import { expertType } from "./array-type.ts";
import { noColumnRules, type ColumnExport } from "./column-rules.ts";
import { int32Array } from "./int32-array.ts";
import type { RowColumns } from "./row-columns.ts";

/**
 * Exports slime's `rollout_routed_experts` and its sets of kept tokens. Routes are uint8 or int32, because slime pads
 * them with consecutive ids of the same type, which PyTorch does not support for uint16. Sets have an entry for each id
 * of the response; those of the environment are empty.
 *
 * **Source:** THUDM/slime 624b824a, slime/utils/types.py (`Sample`) and slime/backends/megatron_utils/cp_utils.py
 * (`prepare_routed_experts_for_routing_replay`).
 */
export const slimeColumns: ColumnExport = {
  rules: {
    ...noColumnRules,
    routedExperts: {
      action: "export",
      why: "`rollout_routed_experts`: uint8 to 256 experts, else int32; a row for each id but the last",
      setting: "--use-rollout-routing-replay",
    },
    keptTokens: {
      action: "export",
      why: "`rollout_top_p_token_ids` and `rollout_top_p_token_offsets`: int32, ragged over the response",
      setting: "--rollout-top-p",
    },
  },
  carrier: "file",
  add: async (record, rows) => await addSlimeColumns(record, rows[0]!),
};

async function addSlimeColumns(record: ExportRecord, row: RowColumns): Promise<ExportRecord> {
  const { routedExperts, keptTokens } = row.specs;
  const rows = row.tokenCount - 1;
  return {
    ...record,
    ...(routedExperts !== undefined && {
      rollout_routed_experts: await row.place(
        row.tokenArray("routedExperts", {
          type: expertType(routedExperts.expertCount, ["uint8"]),
          rows,
        }),
      ),
    }),
    ...(keptTokens !== undefined && (await keptInResponse(row))),
  };
}

async function keptInResponse(row: RowColumns): Promise<ExportRecord> {
  const { idsOf } = await row.tokenSets("keptTokens");
  const offsets = [0];
  const sets: Int32Array[] = [];
  for (let token = row.row.promptLength; token < row.tokenCount; token++) {
    const ids = idsOf(token);
    sets.push(ids);
    offsets.push(offsets.at(-1)! + ids.length);
  }
  return {
    rollout_top_p_token_ids: await row.place(int32Array([offsets.at(-1)!], sets)),
    rollout_top_p_token_offsets: await row.place(
      int32Array([offsets.length], [Int32Array.from(offsets)]),
    ),
  };
}
