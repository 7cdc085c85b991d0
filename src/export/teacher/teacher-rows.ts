import { UsageError } from "../../errors.ts";
import { openColumnFolder, type ColumnFolder } from "../../run/columns/column-folder.ts";
import { codeOf } from "../../run/disk/files.ts";
import { readPlacedLines } from "../../run/disk/placed-lines.ts";
import { storedFiles } from "../../run/gzip/stored-files.ts";
import {
  checkTeacherName,
  listTeachers,
  parseTeacherRow,
  readTeacherRecord,
  rowKey,
  teacherFiles,
  type TeacherRecord,
  type TeacherRow,
} from "../../teacher/teacher-record.ts";
import { hashRow } from "../../trajectory/hash-row.ts";
import type { ReadyRow } from "../exporter.ts";
import { readTaughtRow, type TaughtRow } from "./taught-row.ts";

/** The columns of one teacher in a run's folder. Reads the bytes of one row at a time. */
export class TeacherRows implements AsyncDisposable {
  readonly record: TeacherRecord;
  readonly #dir: string;
  readonly #source: ColumnFolder;
  readonly #scored: ReadonlyMap<string, TeacherRow>;

  private constructor(dir: string, record: TeacherRecord, scored: ReadonlyMap<string, TeacherRow>) {
    this.#dir = dir;
    this.record = record;
    this.#scored = scored;
    this.#source = openColumnFolder(dir);
  }

  /**
   * Opens the columns of a teacher.
   *
   * @throws UsageError if the run has no such teacher.
   */
  static async open(dir: string, name: string): Promise<TeacherRows> {
    checkTeacherName(name);
    const record = await readTeacherRecord(dir, name, storedFiles);
    if (record === undefined) {
      const names = await listTeachers(dir, storedFiles);
      const found = names.length === 0 ? "has no teacher" : `has the teachers ${names.join(", ")}`;
      throw new UsageError(
        `Cannot export the columns of ${name}: ${dir} ${found}; turnwright score ${dir} --name ${name} adds one`,
      );
    }
    const scored = new Map<string, TeacherRow>();
    try {
      for await (const { text } of readPlacedLines(storedFiles, teacherFiles(dir, name).rows)) {
        const row = parseTeacherRow(text);
        if (row !== undefined) scored.set(rowKey(row), row);
      }
    } catch (error) {
      // A teacher that was stopped before its first row has no such file.
      if (codeOf(error) !== "ENOENT") throw error;
    }
    return new TeacherRows(dir, record, scored);
  }

  /**
   * Reads the columns of a row.
   *
   * @throws UsageError if the teacher has not scored the row as it is.
   */
  async read(row: ReadyRow, hasTop: boolean): Promise<TaughtRow> {
    const scored = this.#scored.get(rowKey(row.sample));
    if (scored === undefined) throw this.#unscored(row, "has not scored it");
    if (scored.sampleHash !== hashRow(row.stored)) {
      throw this.#unscored(row, "scored it before it changed");
    }
    return await readTaughtRow(row, { record: this.record, scored, source: this.#source, hasTop });
  }

  #unscored({ sample }: ReadyRow, why: string): UsageError {
    const { name } = this.record;
    return new UsageError(
      `Cannot export ${sample.rolloutId}, row ${sample.segment}, with the teacher ${name}: ${name} ${why}, and the trainer ` +
        `reads a logprob for each trained token; call turnwright score ${this.#dir} --name ${name} again, which says ` +
        "why a row cannot be scored",
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source[Symbol.asyncDispose]();
  }
}
