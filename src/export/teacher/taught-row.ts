import { decodeRagged, type RaggedRows } from "../../columns/ragged-rows.ts";
import { hashColumnBytes } from "../../columns/column-part.ts";
import { decodeLogprobs, findTeacherProblem } from "../../columns/teacher-columns.ts";
import type { ColumnPart, ColumnSource } from "../../columns/index.ts";
import { UsageError } from "../../errors.ts";
import type { TeacherRecord, TeacherRow } from "../../teacher/teacher-record.ts";
import type { ReadyRow } from "../exporter.ts";

/** An id with its logprob. */
export interface Candidate {
  readonly id: number;
  readonly logprob: number;
}

/** A training row with a teacher's columns. Its ids may be fewer than those that the teacher scored. */
export interface TaughtRow extends Pick<ReadyRow, "tokenIds" | "promptLength" | "lossMask"> {
  /** Returns the teacher's logprob of a token after the prompt. */
  readonly logprobOf: (token: number) => number;
  /** Returns the teacher's most probable ids at the position of a token after the prompt, best first. */
  readonly topOf: (token: number) => readonly Candidate[];
}

/**
 * Reads a teacher's columns of a row.
 *
 * @param hasTop - True to read the most probable ids, too.
 * @throws UsageError if the teacher has not scored the row's tokens, or if its columns are damaged.
 */
export async function readTaughtRow(
  row: ReadyRow,
  {
    record,
    scored,
    source,
    hasTop,
  }: {
    readonly record: TeacherRecord;
    /** The teacher's columns of the row. */
    readonly scored: TeacherRow;
    readonly source: ColumnSource;
    readonly hasTop: boolean;
  },
): Promise<TaughtRow> {
  const { tokenIds, promptLength, lossMask } = row;
  const about = { row, record, source };
  const logprobs = decodeLogprobs(
    await readPart("teacherLogprobs", scored.columns.teacherLogprobs, about),
  );
  const top = hasTop ? await readTop(scored.columns.teacherTop, about) : undefined;
  return {
    tokenIds,
    promptLength,
    lossMask,
    logprobOf: (token) => logprobs[token - promptLength]!,
    topOf: (token) => top?.(token - promptLength) ?? [],
  };
}

interface PartSurroundings {
  readonly row: ReadyRow;
  readonly record: TeacherRecord;
  readonly source: ColumnSource;
}

async function readPart(
  name: "teacherLogprobs" | "teacherTop",
  part: ColumnPart | undefined,
  { row, record, source }: PartSurroundings,
): Promise<Uint8Array> {
  const { stored, promptLength } = row;
  const rows = stored.tokenIds.length - promptLength;
  if (part?.from !== promptLength || part.rows !== rows) {
    const found = part === undefined ? "is absent" : `has ${part.rows} tokens from ${part.from} on`;
    throw wrong(row, record, `${name} ${found}, expected ${rows} from ${promptLength} on`);
  }
  const bytes = await source.read(part);
  if (hashColumnBytes(bytes) !== part.hash) {
    throw wrong(row, record, `the bytes of the part ${part.hash} of ${name} were changed`);
  }
  const problem = findTeacherProblem(name, { rows, bytes }, { topCount: record.topCount });
  if (problem === undefined) return bytes;
  throw wrong(row, record, `${problem.problem}, expected ${problem.expected}`);
}

async function readTop(
  part: ColumnPart | undefined,
  about: PartSurroundings,
): Promise<(row: number) => readonly Candidate[]> {
  const bytes = await readPart("teacherTop", part, about);
  const { counts, ids, logprobs }: RaggedRows = decodeRagged(bytes, {
    rows: part!.rows,
    hasLogprobs: true,
  });
  const starts = new Uint32Array(counts.length);
  for (let row = 1; row < counts.length; row++) starts[row] = starts[row - 1]! + counts[row - 1]!;
  return (row) =>
    Array.from({ length: counts[row]! }, (_, rank) => ({
      id: ids[starts[row]! + rank]!,
      logprob: logprobs![starts[row]! + rank]!,
    }));
}

function wrong({ sample }: ReadyRow, { name }: TeacherRecord, why: string): UsageError {
  return new UsageError(
    `Cannot export ${name}'s columns of ${sample.rolloutId}, row ${sample.segment}: ${why}; turnwright verify checks ` +
      "the run's folder, and turnwright score --name with another name scores it again",
  );
}
