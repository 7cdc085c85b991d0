import type { ExportRecord } from "../export-record.ts";
import { expertType } from "./array-type.ts";
import { noColumnRules, type ColumnExport } from "./column-rules.ts";
import { int32Array } from "./int32-array.ts";
import type { ColumnArray } from "./column-sink.ts";
import type { RowColumns } from "./row-columns.ts";

/**
 * Exports SkyRL's `rollout_expert_indices` and `rollout_sample_support`. Support has a row for each id of the response,
 * with -1 after the kept ids, and -1 throughout for ids of the environment.
 *
 * **Source:** skyrl 0.4.0, skyrl/backends/skyrl_train/utils/routed_experts.py (`ROUTED_EXPERT_DTYPES`) and
 * skyrl/train/utils/trainer_utils.py (`validate_generator_output`).
 */
export const skyrlColumns: ColumnExport = {
  rules: {
    ...noColumnRules,
    routedExperts: {
      action: "export",
      why: "`rollout_expert_indices`: uint8 to 256 experts, int16 to 32,768, else int32; a row for each id but the last",
      setting: "trainer.policy.megatron_config.moe_enable_routing_replay=true",
    },
    keptTokens: {
      action: "export",
      why: "`rollout_sample_support`: int32, a row for each id of the response, with -1 after the kept ids",
      setting: "trainer.algorithm.enable_sample_support_replay=true",
    },
  },
  carrier: "file",
  add: async (record, rows) => await addSkyrlColumns(record, rows[0]!),
};

async function addSkyrlColumns(record: ExportRecord, row: RowColumns): Promise<ExportRecord> {
  const { routedExperts, keptTokens } = row.specs;
  const rows = row.tokenCount - 1;
  return {
    ...record,
    ...(routedExperts !== undefined && {
      rollout_expert_indices: await row.place(
        row.tokenArray("routedExperts", {
          type: expertType(routedExperts.expertCount, ["uint8", "int16"]),
          rows,
        }),
      ),
    }),
    ...(keptTokens !== undefined && {
      rollout_sample_support: await row.place(await supportOf(row, keptTokens.maxCount)),
    }),
  };
}

async function supportOf(row: RowColumns, width: number): Promise<ColumnArray> {
  const { idsOf } = await row.tokenSets("keptTokens");
  const { promptLength } = row.row;
  const count = row.tokenCount - promptLength;
  const { bytes: _, ...array } = int32Array([count, width], []);
  return {
    ...array,
    async *bytes() {
      const block = new Int32Array(width);
      for (let token = promptLength; token < row.tokenCount; token++) {
        block.fill(-1);
        block.set(idsOf(token));
        yield await Promise.resolve(new Uint8Array(block.buffer));
      }
    },
  };
}
