import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createColumnPart } from "../columns/column-part.ts";
import { encodeLogprobs } from "../columns/teacher-columns.ts";
import { openColumnFolder } from "../run/columns/column-folder.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { TeacherWriter } from "../teacher/teacher-writer.ts";
import type { TeacherRow } from "../teacher/teacher-record.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import { checkTeachers } from "./check-teachers.ts";

let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-verify-teachers-"));
});
afterAll(async () => await rm(scratch, { recursive: true }));

const sample = { rolloutId: "a", segment: 0, tokenIds: [5, 6, 7, 8], promptLength: 2 };
const record = {
  format: 1,
  name: "big",
  engine: "fake",
  policyVersion: "",
  temperature: 1,
  topCount: 0,
} as const;
let count = 0;

/** Writes a run with one row that a teacher has scored with these logprobs. */
async function writeRun(logprobs: readonly number[] = [-1, -2]): Promise<string> {
  const dir = path.join(scratch, `run-${count++}`);
  await mkdir(dir);
  await writeFile(path.join(dir, "samples.jsonl"), `${JSON.stringify(sample)}\n`);
  await using writer = await TeacherWriter.open(dir, record);
  const part = createColumnPart({
    from: 2,
    rows: 2,
    policyVersion: "",
    bytes: encodeLogprobs(logprobs),
  });
  const { tokenIds: _ids, promptLength: _length, ...row } = sample;
  await writer.write({ ...row, sampleHash: hashRow(sample), columns: { teacherLogprobs: part } });
  return dir;
}

async function check(dir: string, isFinished = true): Promise<readonly string[]> {
  await using source = openColumnFolder(dir);
  const found = await checkTeachers(
    { files: storedFiles, dir, source },
    { vocabularySize: 10, isFinished },
  );
  return found!.findings.map(({ file, rule, detail }) => `${file} ${rule}: ${detail}`);
}

const rowsFile = path.join("teachers", "big.jsonl");

async function editRow(dir: string, change: (row: TeacherRow) => object): Promise<void> {
  const file = path.join(dir, rowsFile);
  const row = JSON.parse(await readFile(file, "utf8")) as TeacherRow;
  await writeFile(file, `${JSON.stringify(change(row))}\n`);
}

test("sound columns have no findings", async () => {
  expect(await check(await writeRun())).toEqual([]);
});

test("a logprob above 0 is found", async () => {
  expect(await check(await writeRun([-1, 0.5]))).toEqual([
    expect.stringMatching(
      /column-bytes: a, row 0: .* row 1 of teacherLogprobs has the logprob 0.5/,
    ),
  ]);
});

test("changed bytes are found", async () => {
  const dir = await writeRun();
  await writeFile(path.join(dir, "columns", "teacher-big-0-0000.bin"), new Uint8Array(8));
  expect(await check(dir)).toEqual([expect.stringContaining("so they were changed")]);
});

test("a row that changed, or left the run, is found when the run has ended", async () => {
  const dir = await writeRun();
  const file = path.join(dir, "samples.jsonl");
  await writeFile(file, `${JSON.stringify({ ...sample, tokenIds: [5, 6, 7, 9] })}\n`);
  expect(await check(dir)).toEqual([
    `${rowsFile} teacher-row: a, row 0 has changed since it was scored; call turnwright score again`,
  ]);
  expect(await check(dir, false)).toEqual([]);
  await writeFile(file, "");
  expect(await check(dir)).toEqual([`${rowsFile} teacher-row: a, row 0 is not in the run`]);
});

test("columns of other tokens, and missing ones, are found", async () => {
  const shifted = await writeRun();
  await editRow(shifted, (row) => ({
    ...row,
    columns: { teacherLogprobs: { ...row.columns.teacherLogprobs, from: 1 } },
  }));
  expect(await check(shifted)).toEqual([
    expect.stringContaining("teacherLogprobs is from 1 with 2 rows, expected from 2 with 2 rows"),
  ]);
  const missing = await writeRun();
  await editRow(missing, (row) => ({ ...row, columns: {} }));
  expect(await check(missing)).toEqual([expect.stringContaining("teacherLogprobs is absent")]);
});

test("a damaged line and a missing description are found", async () => {
  const dir = await writeRun();
  await editRow(dir, () => ({ rolloutId: "a" }));
  expect(await check(dir)).toEqual([`${rowsFile} json: the line is no teacher's row`]);
  await rm(path.join(dir, "teachers", "big.json"));
  expect(await check(dir)).toEqual([
    expect.stringContaining("teachers/big.json is missing or damaged"),
  ]);
});
