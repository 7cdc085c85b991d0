import { withoutUndefined } from "../values/without-undefined.ts";
import { namesOf } from "../columns/column-specs.ts";
import { UsageError } from "../errors.ts";
import { encodeLine } from "../run/disk/encode-line.ts";
import { columnDocument } from "./column-document.ts";
import { chooseColumns } from "./columns/choose-columns.ts";
import { arraysFileOf, ArraysFile, removeArrays } from "./columns/column-sink.ts";
import type { ColumnAdder, ColumnSummary } from "./columns/export-columns.ts";
import { openColumns } from "./columns/open-columns.ts";
import type { ExportRecord } from "./export-record.ts";
import type { ExportNote, ExportSurroundings } from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import { exportRecords } from "./export-records.ts";
import { readRunGroups } from "./read-run-groups.ts";
import { chooseForm } from "./teacher/choose-form.ts";
import { TeacherAdder } from "./teacher/teacher-adder.ts";
import type { TeacherChoice } from "./teacher/teacher-export.ts";

/** The counts of a finished export. JSON-able. */
export interface ExportSummary {
  readonly to: ExportTarget;
  readonly groups: number;
  /** The number of records: rows, or episodes if one record is an episode. */
  readonly records: number;
  /** The rows that are left out because the trainer takes one row an attempt. Absent if there are none. */
  readonly leftOut?: { readonly rowCount: number; readonly tokenCount: number };
  /** The side columns. Absent if the run has none. */
  readonly columns?: ColumnSummary;
  /** The teacher, and the number of rows with its columns. Absent if the export has none. */
  readonly teacher?: { readonly name: string; readonly rowCount: number };
}

/** Options of `exportRun()`. */
export interface ExportOptions {
  /** The policy version, a whole number, of tokens without one (`""`). */
  readonly policyVersion?: number;
  /**
   * The name of the caller's option for `policyVersion`, for error messages. Default:
   * `policyVersion`.
   */
  readonly versionRemedy?: string;
  /** The temperature at which the run sampled, for prime-rl. Default: the one that the run's folder records. */
  readonly temperature?: number;
  /** The discount for advantages of turns, from 0 to 1, for prime-rl and tinker. Default: one advantage an attempt. */
  readonly turnDiscount?: number;
  /** True for a reward at the last token of each turn, for SkyRL. Default: one reward an attempt. */
  readonly hasTurnRewards?: boolean;
  /**
   * The name of the caller's option for `temperature`, for error messages. Default: `temperature`.
   */
  readonly temperatureRemedy?: string;
  /**
   * Returns the text of a prompt's ids, for slime's `prompt`. Default: `prompt` has the messages.
   */
  readonly spell?: ExportSurroundings["spell"];
  /**
   * The file of the rows, as the caller will name it. The arrays of side columns are written beside it, to
   * `FILE.arrays`. Required for a run with side columns if the trainer's format has such a file.
   */
  readonly file?: string;
  /** The teacher whose columns the export contains. Default: none. */
  readonly teacher?: TeacherChoice;
  /** Called for each row that is left out or cut. */
  readonly onNote?: (note: ExportNote) => void;
}

/** An export in progress. */
export interface RunExport {
  /** The bytes of the file. They can be read only once. */
  readonly content: AsyncGenerator<Uint8Array>;
  /** Returns the counts so far. They are final once the content has been read. */
  readonly summary: () => ExportSummary;
}

/**
 * Exports a run's folder to one trainer's file, one group at a time. Writes the arrays of side columns to a binary file,
 * which is complete when the content has been read.
 * @throws UsageError if `dir` is not a run's folder, if it has side columns that the rules refuse, or if the trainer
 *   takes no teacher's columns. Reading the content throws it if a row is refused.
 */
export async function exportRun(
  dir: string,
  to: ExportTarget,
  { onNote, file, teacher: choice, ...known }: ExportOptions = {},
): Promise<RunExport> {
  const run = await readRunGroups(dir, withoutUndefined(known));
  run.requireRows();
  const { taken, leftOut: columnsLeftOut } = chooseColumns(to, run.columns);
  const hasColumns = namesOf(taken).length > 0;
  const form = choice && chooseForm(to, choice);
  const hasFile =
    (hasColumns && exporters[to].columns.carrier === "file") || form?.carrier === "file";
  if (hasFile) requireFile(to, file);
  const { layout } = exporters[to];
  const counts = { groups: 0, records: 0, rowCount: 0, tokenCount: 0 };
  let adder: ColumnAdder | undefined;
  let teacher: TeacherAdder | undefined;
  let byteCount: number | undefined;

  async function* records(): AsyncGenerator<ExportRecord> {
    await using arrays = hasFile ? await ArraysFile.create(arraysFileOf(file!)) : undefined;
    await using own = openColumns(dir, to, { specs: run.columns, sink: arrays });
    adder = own;
    await using opened = await TeacherAdder.open(dir, to, { choice, sink: arrays });
    teacher = opened;
    const surroundings = { ...run.surroundings, ...adder?.surroundings };
    for await (const group of exportRecords(to, run.groups(), { surroundings, adder, teacher })) {
      for (const note of group.notes) {
        onNote?.(note);
        if (note.action !== "one-row") continue;
        counts.rowCount += note.rowCount ?? 0;
        counts.tokenCount += note.tokenCount ?? 0;
      }
      const before = counts.records;
      for await (const record of group.records) {
        counts.records += 1;
        yield record;
      }
      if (counts.records > before) counts.groups += 1;
    }
    await arrays?.finish(file);
    if (!hasFile && file !== undefined) await removeArrays(file);
    byteCount = arrays?.byteCount;
  }

  const content = layout === "lines" ? lines(records()) : columnDocument(records(), layout);
  const summary = (): ExportSummary => {
    const { groups, records: recordCount, rowCount, tokenCount } = counts;
    const { rowCount: rowsWithColumns = 0, mixedRowCount = 0 } = adder ?? {};
    return {
      to,
      groups,
      records: recordCount,
      ...(rowCount > 0 && { leftOut: { rowCount, tokenCount } }),
      ...(namesOf(run.columns).length > 0 && {
        columns: {
          rowCount: rowsWithColumns,
          ...(byteCount !== undefined && { byteCount }),
          mixedRowCount,
          leftOut: columnsLeftOut,
        },
      }),
      ...(choice && { teacher: { name: choice.name, rowCount: teacher?.rowCount ?? 0 } }),
    };
  };
  return { content, summary };
}

/**
 * Requires the name of an output file for a trainer with a binary format.
 *
 * @throws UsageError if a form with a binary file has no name.
 */
function requireFile(to: ExportTarget, file: string | undefined): void {
  if (file !== undefined) return;
  throw new UsageError(
    `Cannot export this run to ${to} on standard output: it has side columns or a teacher's, and ${to}'s lie in a file beside the ` +
      "rows; name the file of the rows (--out FILE)",
  );
}

async function* lines(records: AsyncIterable<object>): AsyncGenerator<Uint8Array> {
  for await (const record of records) yield* (await encodeLine(record)).blocks;
}
