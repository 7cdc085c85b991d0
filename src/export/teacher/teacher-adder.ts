import { assertInvariant } from "../../errors.ts";
import type { ColumnSink } from "../columns/column-sink.ts";
import type { ExportRecord } from "../export-record.ts";
import type { Exporter, ReadyRow } from "../exporter.ts";
import type { ExportTarget } from "../exporters.ts";
import { chooseForm } from "./choose-form.ts";
import type { TaughtRow } from "./taught-row.ts";
import type { TeacherChoice, TeacherForm } from "./teacher-export.ts";
import { TeacherRows } from "./teacher-rows.ts";

/** Adds a teacher's columns to the records of attempts, and counts rows. */
export class TeacherAdder implements AsyncDisposable {
  rowCount = 0;
  readonly #form: TeacherForm;
  readonly #choice: TeacherChoice;
  readonly #rows: TeacherRows;
  readonly #sink: ColumnSink | undefined;

  private constructor(
    form: TeacherForm,
    choice: TeacherChoice,
    { rows, sink }: { readonly rows: TeacherRows; readonly sink: ColumnSink | undefined },
  ) {
    this.#form = form;
    this.#choice = choice;
    this.#rows = rows;
    this.#sink = sink;
  }

  /**
   * Opens the columns of a teacher. Returns `undefined` without a choice.
   *
   * @param dir - The run's folder.
   * @param sink - Takes the arrays of forms with a binary file.
   * @throws UsageError if the trainer takes no such columns, or the run has no such teacher.
   */
  static async open(
    dir: string,
    to: ExportTarget,
    {
      choice,
      sink,
    }: {
      readonly choice: TeacherChoice | undefined;
      readonly sink: ColumnSink | undefined;
    },
  ): Promise<TeacherAdder | undefined> {
    if (choice === undefined) return undefined;
    const form = chooseForm(to, choice);
    const rows = await TeacherRows.open(dir, choice.name);
    return new TeacherAdder(form, choice, { rows, sink });
  }

  /** Returns an exporter with the rules for rows that the teacher's form needs. */
  rulesOf(exporter: Exporter): Exporter {
    return { ...exporter, rules: { ...exporter.rules, ...this.#form.rules } };
  }

  /**
   * Returns a record with the columns of its rows.
   *
   * @throws UsageError if the teacher has not scored a row.
   */
  async add(record: ExportRecord, rows: readonly ReadyRow[]): Promise<ExportRecord> {
    const taught: TaughtRow[] = [];
    for (const row of rows) taught.push(await this.#rows.read(row, this.#choice.hasTop === true));
    this.rowCount += rows.length;
    const sink = this.#sink;
    return await this.#form.add(record, taught, {
      ...this.#choice,
      topCount: this.#rows.record.topCount,
      async place(array) {
        assertInvariant(sink !== undefined, "a form with a binary file has a sink");
        return await sink.place(array);
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#rows[Symbol.asyncDispose]();
  }
}
