import { toBit, type ExportedRow } from "./exported-row.ts";
import { readerOf, type Reader } from "./layout-reader.ts";

/** Reads a sample. Its mask has booleans. */
export const readPrimeRl: Reader = (record) => {
  const read = readerOf({
    ids: "sample.token_ids",
    mask: "sample.mask",
    logprobs: "sample.logprobs",
    advantages: "sample.advantages",
    reward: "reward",
    group: "group",
    rollout: "id",
    lineage: "lineage",
  })(record);
  const toBits = (row: ExportedRow): ExportedRow => ({
    ...row,
    mask: { ...row.mask, values: row.mask.values.map(toBit) },
  });
  return { ...read, rows: read.rows.map(toBits) };
};
