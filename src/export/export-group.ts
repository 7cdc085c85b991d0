import { requireNoColumns } from "./columns/choose-columns.ts";
import type { ExportRecord } from "./export-record.ts";
import type { ExportMember, ExportNote, ExportSurroundings } from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import { prepareGroup } from "./prepare-group.ts";

/** The records of a group in a trainer's form, with notes about each omission. */
export interface ExportedGroup {
  readonly records: readonly ExportRecord[];
  /** One entry for each row that was left out or cut, with the reason. */
  readonly notes: readonly ExportNote[];
}

/**
 * Converts one group to a trainer's records. Reads and writes no files, so that a running run can call it too. The
 * records have no side columns.
 *
 * @throws UsageError if the trainer's rules refuse a row, or if the group has side columns that the trainer takes or
 *   that its rules refuse. The message names the row and the remedy.
 */
export function exportGroup(
  target: ExportTarget,
  members: readonly ExportMember[],
  surroundings: ExportSurroundings = {},
): ExportedGroup {
  const exporter = exporters[target];
  requireNoColumns(target, members);
  const { attempts, notes } = prepareGroup(members, exporter, surroundings);
  return {
    records: attempts.flatMap((attempt) => exporter.toRecords(attempt, surroundings)),
    notes,
  };
}
