import { requireNoColumns } from "./columns/choose-columns.ts";
import type { ColumnAdder } from "./columns/export-columns.ts";
import type { ExportRecord } from "./export-record.ts";
import type {
  Exporter,
  ExportMember,
  ExportNote,
  ExportSurroundings,
  ReadyAttempt,
} from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import { prepareGroup } from "./prepare-group.ts";
import type { TeacherAdder } from "./teacher/teacher-adder.ts";
import { withPromptText } from "./trainers/slime.ts";

/** The records of a group, made one at a time, with notes about each omission. */
export interface RecordStream {
  readonly records: AsyncIterable<ExportRecord>;
  readonly notes: readonly ExportNote[];
}

/**
 * Exports each group of a stream as it arrives. Renders the prompts as text if the exporter needs them, and adds the
 * side columns and the teacher's columns of one record at a time.
 */
export async function* exportRecords(
  target: ExportTarget,
  groups: AsyncIterable<readonly ExportMember[]>,
  {
    surroundings,
    adder,
    teacher,
  }: {
    readonly surroundings: ExportSurroundings;
    readonly adder: ColumnAdder | undefined;
    readonly teacher?: TeacherAdder | undefined;
  },
): AsyncGenerator<RecordStream> {
  const exporter: Exporter = teacher?.rulesOf(exporters[target]) ?? exporters[target];
  const spell = exporter.hasPromptText === true ? surroundings.spell : undefined;
  for await (const members of groups) {
    if (adder === undefined) requireNoColumns(target, members);
    const { attempts, notes } = prepareGroup(members, exporter, surroundings);
    async function* records(): AsyncGenerator<ExportRecord> {
      for (const attempt of attempts) {
        const plain = exporter.toRecords(attempt, surroundings);
        const withColumns = adder === undefined ? plain : adder.add(plain, attempt);
        const added = withTeacher(withColumns, teacher, { attempt, count: plain.length });
        for await (const record of added) {
          yield spell === undefined ? record : await withPromptText(record, spell);
        }
      }
    }
    yield { records: records(), notes };
  }
}

/** Adds the teacher's columns to records. A record has one row, or all rows of the attempt. */
async function* withTeacher(
  records: Iterable<ExportRecord> | AsyncIterable<ExportRecord>,
  teacher: TeacherAdder | undefined,
  {
    attempt: { rows },
    count,
  }: { readonly attempt: Pick<ReadyAttempt, "rows">; readonly count: number },
): AsyncGenerator<ExportRecord> {
  let index = 0;
  for await (const record of records) {
    const own = count === rows.length ? [rows[index++]!] : rows;
    yield teacher === undefined ? record : await teacher.add(record, own);
  }
}
