import type { ColumnName } from "../../columns/index.ts";
import type { ExportRecord } from "../export-record.ts";
import type { RowColumns } from "./row-columns.ts";

/** The action that an exporter takes for a side column of a run, and the reason for the action. */
export interface ColumnRule {
  /**
   * `export` writes the column in the trainer's form. `leave-out` writes the rows without it, and reports that.
   * `refuse` exports nothing.
   */
  readonly action: "export" | "leave-out" | "refuse";
  /** The trainer's field and its form, or the reason why the column is not exported. For people. */
  readonly why: string;
  /** The setting with which the trainer reads the column. */
  readonly setting?: string;
}

/** An exporter's rule for every column of the engine. */
export type ColumnRules = Readonly<Record<ColumnName, ColumnRule>>;

/** The way in which an exporter writes side columns. */
export interface ColumnExport {
  readonly rules: ColumnRules;
  /**
   * The place of the arrays: `file` is a binary file beside the rows, `record` is the record itself. Absent if the
   * exporter writes no columns.
   */
  readonly carrier?: "file" | "record";
  /**
   * Returns the record with the columns of its rows.
   *
   * @throws UsageError for columns that the trainer would misread.
   */
  readonly add?: (record: ExportRecord, rows: readonly RowColumns[]) => Promise<ExportRecord>;
}

/** Rules for a trainer without any field for side columns. */
export const noColumnRules: ColumnRules = {
  routedExperts: {
    action: "leave-out",
    why: "no field for it: the trainer chooses the experts again",
  },
  keptTokens: {
    action: "refuse",
    why: "no field for the sets, and the run's logprobs are those over the sets",
  },
  topLogprobs: { action: "leave-out", why: "no field for it" },
  indexerTopK: {
    action: "leave-out",
    why: "no field for it: the trainer selects the positions again",
  },
};

/** The export to a trainer without any field for side columns. */
export const noColumns: ColumnExport = { rules: noColumnRules };
