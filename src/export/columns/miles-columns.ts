import type { ExportRecord } from "../export-record.ts";
import { noColumnRules, type ColumnExport } from "./column-rules.ts";
import type { RowColumns } from "./row-columns.ts";

/**
 * Exports miles' `rollout_routed_experts` and `rollout_indexer_topk`, always int32, and the top logprobs in `metadata`
 * as SGLang lists them: an entry for each id of the response, empty for those of the environment.
 *
 * **Source:** radixark/miles 31f1ca961, miles/utils/types.py (`Sample.validate`) and
 * miles/rollout/generate_utils/sample_utils.py.
 */
export const milesColumns: ColumnExport = {
  rules: {
    ...noColumnRules,
    routedExperts: {
      action: "export",
      why: "`rollout_routed_experts`: int32; a row for each id but the last",
      setting: "--use-rollout-routing-replay",
    },
    topLogprobs: {
      action: "export",
      why: "`metadata.opd_student_top_logprobs`: SGLang's lists over the response",
      setting: "--opd-log-prob-top-k",
    },
    indexerTopK: {
      action: "export",
      why: "`rollout_indexer_topk`: int32; a row for each id but the last",
      setting: "--use-rollout-indexer-replay",
    },
  },
  carrier: "file",
  add: async (record, rows) => await addMilesColumns(record, rows[0]!),
};

async function addMilesColumns(record: ExportRecord, row: RowColumns): Promise<ExportRecord> {
  const { routedExperts, indexerTopK, topLogprobs } = row.specs;
  const about = { type: "int32", rows: row.tokenCount - 1 } as const;
  const metadata = record["metadata"] as object;
  return {
    ...record,
    ...(routedExperts !== undefined && {
      rollout_routed_experts: await row.place(row.tokenArray("routedExperts", about)),
    }),
    ...(indexerTopK !== undefined && {
      rollout_indexer_topk: await row.place(row.tokenArray("indexerTopK", about)),
    }),
    ...(topLogprobs !== undefined && {
      metadata: { ...metadata, opd_student_top_logprobs: await topsInResponse(row) },
    }),
  };
}

async function topsInResponse(row: RowColumns): Promise<readonly object[]> {
  const { idsOf, logprobsOf } = await row.tokenSets("topLogprobs");
  const { promptLength } = row.row;
  return Array.from({ length: row.tokenCount - promptLength }, (_, index) => {
    const logprobs = logprobsOf(index + promptLength);
    return Array.from(idsOf(index + promptLength), (id, rank) => [logprobs[rank], id, null]);
  });
}
