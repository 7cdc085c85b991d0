import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { TeacherColumnName, TeacherParts } from "../columns/teacher-columns.ts";
import { withoutBytes, type ColumnPart } from "../columns/column-part.ts";
import { UsageError } from "../errors.ts";
import { diskFiles, type Files } from "../run/disk/files.ts";
import { JsonlJournal } from "../run/disk/jsonl-journal.ts";
import type { LockOptions } from "../run/disk/lock-options.ts";
import { RunLock } from "../run/disk/run-lock.ts";
import { storageError } from "../run/disk/storage-error.ts";
import { writeJsonAtomically } from "../run/disk/write-atomically.ts";
import { columnsFolder } from "../run/columns/column-index.ts";
import { ColumnWriter, nextWriter } from "../run/columns/column-writer.ts";
import {
  checkTeacherName,
  parseTeacherRow,
  readTeacherRecord,
  rowKey,
  teacherFiles,
  teachersFolder,
  type TeacherRecord,
  type TeacherRow,
} from "./teacher-record.ts";

/**
 * Writes the columns of a teacher beside a run's own files. The bytes are synced before the line that names them, so a
 * line that is there is complete. One process at a time writes teachers' files of a run.
 */
export class TeacherWriter implements AsyncDisposable {
  readonly record: TeacherRecord;
  readonly #lock: RunLock;
  readonly #rows: JsonlJournal;
  /** Opens the files of the bytes, which are those of this start alone. */
  readonly #openColumns: () => Promise<ColumnWriter>;
  #columns: Promise<ColumnWriter> | undefined;
  /** The hash of each scored row, by the row's key. */
  readonly #scored: Map<string, string>;

  private constructor(
    record: TeacherRecord,
    opened: { lock: RunLock; rows: JsonlJournal; openColumns: () => Promise<ColumnWriter> },
    scored: Map<string, string>,
  ) {
    this.record = record;
    this.#lock = opened.lock;
    this.#rows = opened.rows;
    this.#openColumns = opened.openColumns;
    this.#scored = scored;
  }

  /**
   * Opens a teacher's files in a run's folder: new ones, or those of earlier starts.
   *
   * @throws UsageError if another process writes teachers' files of the run, if another teacher has the name, or if the
   *   disk fails.
   */
  static async open(
    runDir: string,
    record: TeacherRecord,
    {
      files = diskFiles,
      signal,
      command,
    }: { readonly files?: Files } & Pick<LockOptions, "signal" | "command"> = {},
  ): Promise<TeacherWriter> {
    checkTeacherName(record.name);
    const dir = path.resolve(runDir);
    const folder = path.join(dir, teachersFolder);
    try {
      await files.makeFolder(folder);
    } catch (error) {
      throw storageError("create", folder, error);
    }
    const lock = await RunLock.take(folder, {
      files,
      ...(signal && { signal }),
      ...(command !== undefined && { command }),
    });
    const guard = () => lock.confirm();
    try {
      await claimName(dir, record, files);
      const rows = await JsonlJournal.open(teacherFiles(dir, record.name).rows, { files, guard });
      const scored = new Map<string, string>();
      for await (const line of rows.lines()) {
        const row = parseTeacherRow(line);
        if (row !== undefined) scored.set(rowKey(row), row.sampleHash);
      }
      const openColumns = async (): Promise<ColumnWriter> => {
        const columnsDir = path.join(dir, columnsFolder);
        const name = await nextWriter(columnsDir, files, `teacher-${record.name}`);
        return await ColumnWriter.open(columnsDir, { files, name, guard });
      };
      return new TeacherWriter(record, { lock, rows, openColumns }, scored);
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** True if the row's columns are written. They are not if the row changed since. */
  has(row: Omit<TeacherRow, "columns">): boolean {
    return this.#scored.get(rowKey(row)) === row.sampleHash;
  }

  /**
   * Writes the columns of a row. Resolves when they survive a crash.
   *
   * @throws UsageError if the disk fails, or another process has taken the files over.
   */
  async write({ columns, ...row }: TeacherRow): Promise<void> {
    const { teacherLogprobs, teacherTop } = columns;
    const parts = [teacherLogprobs, teacherTop].filter((part) => part !== undefined);
    this.#columns ??= this.#openColumns();
    const writer = await this.#columns;
    await writer.keepParts(parts);
    await writer.flush();
    await this.#rows.append({ ...row, columns: bare(columns) } satisfies TeacherRow);
    this.#scored.set(rowKey(row), row.sampleHash);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using _lock = this.#lock;
    await using _rows = this.#rows;
    await using _columns = await this.#columns;
  }
}

function bare(columns: TeacherParts): TeacherParts {
  const entries = Object.entries(columns) as [TeacherColumnName, ColumnPart][];
  return Object.fromEntries(entries.map(([name, part]) => [name, withoutBytes(part)]));
}

/** Writes the teacher's description, or compares it with the one that is there. */
async function claimName(dir: string, record: TeacherRecord, files: Files): Promise<void> {
  const { record: file } = teacherFiles(dir, record.name);
  const earlier = await readTeacherRecord(dir, record.name, files);
  if (earlier === undefined) {
    await writeJsonAtomically(file, record, { files });
    return;
  }
  for (const name of ["engine", "model", "policyVersion", "topCount"] as const) {
    if (isDeepStrictEqual(earlier[name], record[name])) continue;
    throw new UsageError(
      `Cannot score as ${record.name}: ${file} has rows by a teacher with ${name} ${JSON.stringify(earlier[name])}, ` +
        `and this one has ${JSON.stringify(record[name])}; choose another name (--name), or remove ${file} and ${teacherFiles(dir, record.name).rows}`,
    );
  }
}
