import { isObject } from "../values/is-object.ts";
import path from "node:path";
import type { TeacherColumnName, TeacherParts } from "../columns/teacher-columns.ts";
import { isColumnPart } from "../columns/column-part.ts";
import { UsageError } from "../errors.ts";
import { parseJsonText } from "../json/parse-json.ts";
import { codeOf, type Files, readText } from "../run/disk/files.ts";
import { storageError } from "../run/disk/storage-error.ts";

/** The folder of the teachers' files, in a run's folder. */
export const teachersFolder = "teachers";

/** The description of a teacher that scored rows of a run: `teachers/NAME.json`. JSON-able. */
export interface TeacherRecord {
  readonly format: 1;
  readonly name: string;
  /** The kind of the engine, such as `sglang`. */
  readonly engine: string;
  /** The model's name or folder, if the engine reports it. */
  readonly model?: string;
  /** The version of the weights, or `""` if the engine reports none. */
  readonly policyVersion: string;
  readonly engineVersion?: string;
  /** The temperature of the softmax. */
  readonly temperature: 1;
  /** Number of the most probable ids in each place. 0: the rows have no column `teacherTop`. */
  readonly topCount: number;
}

/** The columns of a row by a teacher: a line of `teachers/NAME.jsonl`. The last line of a row counts. JSON-able. */
export interface TeacherRow {
  readonly rolloutId: string;
  readonly segment: number;
  /** The `hashRow()` of the row that was scored. */
  readonly sampleHash: string;
  readonly columns: TeacherParts;
}

/** The files of a teacher in a run's folder. */
export function teacherFiles(
  runDir: string,
  name: string,
): { readonly record: string; readonly rows: string } {
  const base = path.join(runDir, teachersFolder, name);
  return { record: `${base}.json`, rows: `${base}.jsonl` };
}

/** Returns the names of the teachers that scored rows of a run, in order. */
export async function listTeachers(runDir: string, files: Files): Promise<readonly string[]> {
  try {
    const names = await files.list(path.join(runDir, teachersFolder));
    return names.flatMap((name) => /^(.*)\.jsonl$/.exec(name)?.[1] ?? []).toSorted();
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
    throw error;
  }
}

/**
 * Checks a teacher's name, which is part of names of files.
 *
 * @throws UsageError
 */
export function checkTeacherName(name: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name)) return;
  throw new UsageError(
    `Cannot name a teacher ${JSON.stringify(name)}: expected letters, digits, ".", "_" and "-", at most 100, such as qwen3-32b`,
  );
}

/** Returns a name for a teacher: the last part of its model's name, or the engine's kind. */
export function nameOfModel(model: string | undefined, kind: string): string {
  const last = (model ?? "").split(/[/\\]/).findLast((part) => part !== "") ?? kind;
  const name = last.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return name === "" ? kind : name.slice(0, 100);
}

/**
 * Reads a teacher's description. Returns `undefined` if the run has no such teacher.
 *
 * @throws UsageError if the file cannot be read.
 */
export async function readTeacherRecord(
  runDir: string,
  name: string,
  files: Files,
): Promise<TeacherRecord | undefined> {
  const { record: file } = teacherFiles(runDir, name);
  let text: string | undefined;
  try {
    text = await readText(files, file);
  } catch (error) {
    throw storageError("read", file, error);
  }
  if (text === undefined) return undefined;
  const record = parseTeacherRecord(text);
  if (record !== undefined && record.name === name) return record;
  throw new UsageError(`Cannot read ${file}: expected a teacher's description of format 1`);
}

/** Reads the text of a teacher's description. Returns `undefined` if it is damaged. */
function parseTeacherRecord(text: string): TeacherRecord | undefined {
  const value = parseJsonText(text);
  if (!isObject(value)) return undefined;
  const { format, name, engine, policyVersion, temperature, topCount } = value;
  const isSound =
    format === 1 &&
    typeof name === "string" &&
    typeof engine === "string" &&
    typeof policyVersion === "string" &&
    temperature === 1 &&
    Number.isSafeInteger(topCount) &&
    (topCount as number) >= 0;
  return isSound ? (value as unknown as TeacherRecord) : undefined;
}

/** Reads a line of a teacher's rows. Returns `undefined` if it is damaged. */
export function parseTeacherRow(text: string): TeacherRow | undefined {
  const value = parseJsonText(text);
  if (!isObject(value)) return undefined;
  const { rolloutId, segment, sampleHash, columns } = value;
  const isSound =
    typeof rolloutId === "string" &&
    Number.isSafeInteger(segment) &&
    typeof sampleHash === "string" &&
    isObject(columns) &&
    Object.entries(columns).every(([name, part]) => isTeacherColumn(name) && isColumnPart(part));
  return isSound ? (value as unknown as TeacherRow) : undefined;
}

function isTeacherColumn(name: string): name is TeacherColumnName {
  return name === "teacherLogprobs" || name === "teacherTop";
}

/** Returns the key of a row among the rows of a run. */
export function rowKey({ rolloutId, segment }: Pick<TeacherRow, "rolloutId" | "segment">): string {
  return `${segment} ${rolloutId}`;
}
