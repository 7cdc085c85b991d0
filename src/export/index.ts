/**
 * Rows for trainers: `exportRun()` and `exportGroups()`.
 *
 * @module
 */
export { exportGroup, exportGroups, type ExportedGroup } from "./export-groups.ts";
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
