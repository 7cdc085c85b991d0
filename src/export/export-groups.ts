import type { ExportMember, ExportNote, ExportSurroundings } from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import { prepareGroup } from "./prepare-group.ts";

/** A group in a trainer's form. */
export interface ExportedGroup {
  readonly records: readonly Readonly<Record<string, unknown>>[];
  /** What was left out of it or cut, and why. */
  readonly notes: readonly ExportNote[];
}

/**
 * Makes a trainer's records of one group. Pure: for whoever has groups at hand, such as a live run.
 *
 * @throws UsageError where the trainer cannot be given a row of it, naming the row and the remedy.
 */
export function exportGroup(
  target: ExportTarget,
  members: readonly ExportMember[],
  surroundings: ExportSurroundings = {},
): ExportedGroup {
  const exporter = exporters[target];
  const { attempts, notes } = prepareGroup(members, exporter.rules, surroundings);
  return {
    records: attempts.flatMap((attempt) => exporter.toRecords(attempt, surroundings)),
    notes,
  };
}

/** `exportGroup()` of each group of a stream, as it comes. */
export async function* exportGroups(
  target: ExportTarget,
  groups: AsyncIterable<readonly ExportMember[]>,
  surroundings: ExportSurroundings = {},
): AsyncGenerator<ExportedGroup> {
  for await (const members of groups) yield exportGroup(target, members, surroundings);
}
