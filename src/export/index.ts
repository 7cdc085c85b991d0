/**
 * Rows for trainers: `exportRun()` and `exportGroup()`.
 *
 * @module
 */
export { exportGroup, type ExportedGroup } from "./export-group.ts";
export type { ColumnSummary } from "./columns/export-columns.ts";
export { exportRun, type ExportOptions, type ExportSummary, type RunExport } from "./export-run.ts";
export type { ExportRecord } from "./export-record.ts";
export type {
  ExportAction,
  ExportKind,
  ExportMember,
  ExportNote,
  ExportSurroundings,
} from "./exporter.ts";
export type { ExportTarget } from "./exporters.ts";
export type { TeacherChoice } from "./teacher/teacher-export.ts";
