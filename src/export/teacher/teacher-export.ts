import type { PlacedArray, ColumnArray } from "../columns/column-sink.ts";
import type { ExportRecord } from "../export-record.ts";
import type { ExportRules } from "../exporter.ts";
import type { TaughtRow } from "./taught-row.ts";

/** The teacher whose columns an export contains, and the requested form. */
export interface TeacherChoice {
  /** The teacher's name in the run's folder. */
  readonly name: string;
  /** True to export the most probable ids at each position, in place of the logprobs of the row's own tokens. */
  readonly hasTop?: boolean;
  /** The weight of the teacher in advantages, at least 0, for tinker. Default: 1. */
  readonly weight?: number;
}

/** Facts that an exporter needs to add a teacher's columns to a record. */
export interface TeacherSurroundings extends TeacherChoice {
  /** Number of most probable ids that the teacher listed at each position. */
  readonly topCount: number;
  /** Writes an array into the export's binary file. Returns its place there. */
  readonly place: (array: ColumnArray) => Promise<PlacedArray>;
}

/** The form of a teacher's column in a trainer's record. */
export interface TeacherForm {
  readonly action: "export";
  /** The trainer's fields and their form. For people. */
  readonly why: string;
  /** The setting with which the trainer reads the fields. */
  readonly setting?: string;
  /** The place of the values: `file` is the binary file beside the rows, `record` is the record itself. */
  readonly carrier: "file" | "record";
  /** True if the form reads `TeacherChoice.weight`. */
  readonly hasWeight?: true;
  /** Rules for rows that differ from the exporter's own. */
  readonly rules?: Partial<ExportRules>;
  /** Returns the record with the teacher's columns of its rows. */
  readonly add: (
    record: ExportRecord,
    rows: readonly TaughtRow[],
    surroundings: TeacherSurroundings,
  ) => ExportRecord | Promise<ExportRecord>;
}

/** The reason why a trainer gets no column of this kind. */
interface NoForm {
  readonly action: "refuse";
  readonly why: string;
}

/** The forms of a teacher's columns for a trainer. */
export interface TeacherExport {
  /** The form of `teacherLogprobs`. */
  readonly logprobs: TeacherForm | NoForm;
  /** The form of `teacherTop`. */
  readonly top: TeacherForm | NoForm;
}
