export {
  columnNames,
  type ColumnName,
  type ColumnSpecs,
  type ExpertShape,
  type IndexerShape,
  type KeptTokensSpec,
  type TopSpec,
} from "./column-specs.ts";
export type { ColumnPart, ColumnParts } from "./column-part.ts";
export type { ColumnStore } from "./column-store.ts";
export type { ColumnSource } from "./column-source.ts";
export type { TeacherColumnName, TeacherParts } from "./teacher-columns.ts";
export { decodeRagged, type RaggedRows } from "./ragged-rows.ts";
