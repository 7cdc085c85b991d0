import path from "node:path";
import type { ColumnPart } from "../columns/column-part.ts";
import type { ColumnSource } from "../columns/column-source.ts";
import { findTeacherProblem, type TeacherColumnName } from "../columns/teacher-columns.ts";
import { UsageError } from "../errors.ts";
import { parseJsonText } from "../json/parse-json.ts";
import type { Files } from "../run/disk/files.ts";
import { readPlacedLines } from "../run/disk/placed-lines.ts";
import { samplesFile } from "../run/folder/scan-claims.ts";
import {
  listTeachers,
  parseTeacherRow,
  readTeacherRecord,
  rowKey,
  teacherFiles,
  type TeacherRecord,
  type TeacherRow,
} from "../teacher/teacher-record.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import type { Violation } from "../trajectory/violation.ts";
import { isObject } from "../values/is-object.ts";
import { findingsIn, type Finding } from "./finding.ts";
import { readSoundPart } from "./read-sound-part.ts";

/** The facts of a run that its teachers' columns are checked against. */
interface TeacherFacts {
  readonly vocabularySize?: number | undefined;
  /** False if rows may still be added or removed. */
  readonly isFinished: boolean;
}

/** The facts of a row of the run. */
interface RowFacts {
  readonly sampleHash: string;
  readonly promptLength: number;
  readonly tokenCount: number;
}

/** The result of checking the teachers of a run. */
export interface TeachersCheck {
  /** Number of the run's rows that each teacher has scored, by the teacher's name. */
  readonly scored: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
}

/**
 * Checks the columns that teachers added to a run: each line names an existing, unchanged row of the run, its columns
 * cover the tokens after the prompt, and their bytes have the hash and valid values.
 *
 * @returns `undefined` if the run has no teacher.
 */
export async function checkTeachers(
  {
    files,
    dir,
    source,
  }: { readonly files: Files; readonly dir: string; readonly source: ColumnSource },
  facts: TeacherFacts,
): Promise<TeachersCheck | undefined> {
  const names = await listTeachers(dir, files);
  if (names.length === 0) return undefined;
  const rows = await readRowFacts(files, path.join(dir, samplesFile));
  const findings: Finding[] = [];
  const scored: Record<string, number> = {};
  for (const name of names) {
    const found = await checkTeacher(name, { files, dir, source, rows }, facts);
    findings.push(...found.findings);
    scored[name] = found.count;
  }
  return { scored, findings };
}

async function readRowFacts(files: Files, file: string): Promise<ReadonlyMap<string, RowFacts>> {
  const rows = new Map<string, RowFacts>();
  for await (const { text } of readPlacedLines(files, file)) {
    const row = parseJsonText(text);
    if (!isObject(row)) continue;
    const { rolloutId, segment, promptLength, tokenIds } = row;
    if (typeof rolloutId !== "string" || !Array.isArray(tokenIds)) continue;
    const key = rowKey({ rolloutId, segment: segment as number });
    const tokenCount = tokenIds.length;
    rows.set(key, { sampleHash: hashRow(row), promptLength: promptLength as number, tokenCount });
  }
  return rows;
}

async function checkTeacher(
  name: string,
  {
    files,
    dir,
    source,
    rows,
  }: {
    readonly files: Files;
    readonly dir: string;
    readonly source: ColumnSource;
    readonly rows: ReadonlyMap<string, RowFacts>;
  },
  facts: TeacherFacts,
): Promise<{ readonly count: number; readonly findings: readonly Finding[] }> {
  const place = path.relative(dir, teacherFiles(dir, name).rows);
  const record = await readTeacherRecord(dir, name, files).catch((error: unknown) => {
    if (error instanceof UsageError) return undefined;
    throw error;
  });
  if (record === undefined) {
    const detail = `teachers/${name}.json is missing or damaged, so nothing says which teacher scored the rows`;
    return { count: 0, findings: findingsIn(place, [{ rule: "teacher", detail }]) };
  }
  const violations: (Violation & { readonly line: number })[] = [];
  /** The last line of each row. */
  const last = new Map<string, { readonly line: number; readonly row: TeacherRow }>();
  for await (const { text, place: at } of readPlacedLines(files, teacherFiles(dir, name).rows)) {
    const row = parseTeacherRow(text);
    if (row !== undefined) last.set(rowKey(row), { line: at.line, row });
    else if (facts.isFinished) {
      violations.push({ line: at.line, rule: "json", detail: "the line is no teacher's row" });
    }
  }
  let count = 0;
  for (const { line, row } of last.values()) {
    const found = await checkRow(row, { source, record, facts, of: rows.get(rowKey(row)) });
    if (found === "none") continue;
    count++;
    if (found !== undefined) violations.push({ line, ...found });
  }
  return { count, findings: findingsIn(place, violations) };
}

async function checkRow(
  { rolloutId, segment, sampleHash, columns }: TeacherRow,
  {
    source,
    record,
    facts,
    of,
  }: {
    readonly source: ColumnSource;
    readonly record: TeacherRecord;
    readonly facts: TeacherFacts;
    readonly of: RowFacts | undefined;
  },
): Promise<Violation | "none" | undefined> {
  const which = `${rolloutId}, row ${segment}`;
  if (of === undefined) {
    if (!facts.isFinished) return "none";
    return { rule: "teacher-row", detail: `${which} is not in the run` };
  }
  if (of.sampleHash !== sampleHash) {
    if (!facts.isFinished) return "none";
    const detail = `${which} has changed since it was scored; call turnwright score again`;
    return { rule: "teacher-row", detail };
  }
  const count = of.tokenCount - of.promptLength;
  const expected: readonly TeacherColumnName[] =
    record.topCount > 0 ? ["teacherLogprobs", "teacherTop"] : ["teacherLogprobs"];
  for (const name of count > 0 ? expected : []) {
    const part = columns[name];
    if (part?.from !== of.promptLength || part.rows !== count) {
      const found = part === undefined ? "absent" : `from ${part.from} with ${part.rows} rows`;
      const detail = `${which}: ${name} is ${found}, expected from ${of.promptLength} with ${count} rows`;
      return { rule: "teacher-column", detail };
    }
    const fault = await findFault(name, part, { source, record, facts });
    if (fault !== undefined) {
      return { rule: "column-bytes", detail: `${which}: ${name}, part ${part.hash}: ${fault}` };
    }
  }
  return undefined;
}

async function findFault(
  name: TeacherColumnName,
  part: ColumnPart,
  {
    source,
    record: { topCount },
    facts,
  }: {
    readonly source: ColumnSource;
    readonly record: TeacherRecord;
    readonly facts: TeacherFacts;
  },
): Promise<string | undefined> {
  const read = await readSoundPart(source, part);
  if ("fault" in read) return read.fault;
  const { vocabularySize } = facts;
  const problem = findTeacherProblem(
    name,
    { rows: part.rows, bytes: read.bytes },
    {
      topCount,
      ...(vocabularySize !== undefined && { vocabularySize }),
    },
  );
  return problem && `${problem.problem}, expected ${problem.expected}`;
}
