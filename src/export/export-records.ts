import { requireNoColumns } from "./columns/choose-columns.ts";
import type { ColumnAdder } from "./columns/export-columns.ts";
import type { ExportRecord } from "./export-record.ts";
import type { ExportMember, ExportNote, ExportSurroundings } from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import { prepareGroup } from "./prepare-group.ts";
import { withPromptText } from "./trainers/slime.ts";

/** The records of a group, made one at a time, with notes about each omission. */
export interface RecordStream {
  readonly records: AsyncIterable<ExportRecord>;
  readonly notes: readonly ExportNote[];
}

/**
 * Exports each group of a stream as it arrives. Renders the prompts as text if the exporter needs them, and adds the
 * side columns of one record at a time.
 */
export async function* exportRecords(
  target: ExportTarget,
  groups: AsyncIterable<readonly ExportMember[]>,
  {
    surroundings,
    adder,
  }: { readonly surroundings: ExportSurroundings; readonly adder: ColumnAdder | undefined },
): AsyncGenerator<RecordStream> {
  const exporter = exporters[target];
  const spell = exporter.hasPromptText === true ? surroundings.spell : undefined;
  for await (const members of groups) {
    if (adder === undefined) requireNoColumns(target, members);
    const { attempts, notes } = prepareGroup(members, exporter, surroundings);
    async function* records(): AsyncGenerator<ExportRecord> {
      for (const attempt of attempts) {
        const plain = exporter.toRecords(attempt, surroundings);
        const added = adder === undefined ? plain : adder.add(plain, attempt);
        for await (const record of added) {
          yield spell === undefined ? record : await withPromptText(record, spell);
        }
      }
    }
    yield { records: records(), notes };
  }
}
