import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeColumnRun } from "../../../export/columns/column-run.fixture.ts";
import { arraysFileOf, type PlacedArray } from "../../../export/columns/column-sink.ts";
import { exportRun } from "../../../export/export-run.ts";
import type { TeacherChoice } from "../../../export/teacher/teacher-export.ts";
import { addTeacher } from "../../../export/teacher/teacher-run.fixture.ts";
import { writeAtomically } from "../../../run/disk/write-atomically.ts";
import { verifyExport } from "../verify-export.ts";

const large: TeacherChoice = { name: "large" };
const top: TeacherChoice = { name: "wide", hasTop: true };

/** The exports by the name of their file. */
const exportsByName = {
  slime: ["slime", large],
  miles: ["miles", large],
  "prime-rl": ["prime-rl", large],
  verl: ["verl", large],
  "verl-top": ["verl", top],
  trl: ["trl", top],
  tinker: ["tinker", large],
  "tinker-top": ["tinker", top],
} as const;
type Name = keyof typeof exportsByName;

let scratch = "";
let run = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-verify-teacher-"));
  run = path.join(scratch, "run");
  await writeColumnRun(run, { routedExperts: { layerCount: 3, perToken: 2, expertCount: 8 } });
  await addTeacher(run, { name: "large" });
  await addTeacher(run, { name: "wide", topCount: 3 });
  for (const [name, [to, teacher]] of Object.entries(exportsByName)) {
    const file = path.join(scratch, name);
    await writeAtomically(file, (await exportRun(run, to, { file, teacher })).content);
  }
});
afterAll(async () => await rm(scratch, { recursive: true }));

async function details(file: string, name: Name, folder?: string) {
  const [to, teacher] = exportsByName[name];
  const options = { teacher, ...(folder !== undefined && { run: folder }) };
  const { violations } = await verifyExport(file, to, options);
  return violations.map(({ line, rule, detail }) => `${line} ${rule}: ${detail}`);
}

describe("an export with a teacher is sound, alone and against its run", () => {
  for (const name of Object.keys(exportsByName) as Name[]) {
    test(name, async () => {
      const file = path.join(scratch, name);
      expect(await details(file, name)).toEqual([]);
      expect(await details(file, name, run)).toEqual([]);
    });
  }
});

type Row = Record<string, unknown>;

interface Damage {
  /** Changes the first record. */
  readonly record?: (record: Row) => void;
  /** Overwrites an element of an array: its index, and 4 bytes. */
  readonly poke?: (record: Row) => readonly [PlacedArray, number, ArrayBuffer];
}

async function damage(name: Name, { record: change, poke }: Damage): Promise<string> {
  const file = path.join(await mkdtemp(path.join(scratch, "damaged-")), name);
  const [first, ...others] = (await readFile(path.join(scratch, name), "utf8")).split("\n");
  const record = JSON.parse(first!) as Row;
  change?.(record);
  await writeFile(file, [JSON.stringify(record), ...others].join("\n"));
  const source = arraysFileOf(path.join(scratch, name));
  await cp(source, arraysFileOf(file)).catch(() => {});
  if (poke === undefined) return file;
  const [placed, index, bytes] = poke(record);
  const content = await readFile(arraysFileOf(file));
  content.set(new Uint8Array(bytes), placed.offset + index * 4);
  await writeFile(arraysFileOf(file), content);
  return file;
}

const float = (value: number): ArrayBuffer => Float32Array.of(value).buffer;
const int = (value: number): ArrayBuffer => Int32Array.of(value).buffer;
const arrayAt = (record: Row, holder: string, name: string): PlacedArray =>
  (record[holder] as Record<string, PlacedArray>)[name]!;

describe("a damage is named", () => {
  const cases: readonly (readonly [Name, string, Damage, string])[] = [
    [
      "slime",
      "a logprob too few",
      { record: (row) => (row["teacher_log_probs"] as number[]).pop() },
      "1 columns: teacher_log_probs is no list of 13 entries",
    ],
    [
      "miles",
      "a probability above 1",
      { record: (row) => ((row["teacher_log_probs"] as number[])[4] = 0.5) },
      "1 columns: teacher_log_probs[4] is 0.5, expected a logprob for each id of the response",
    ],
    [
      "slime",
      "a row without the teacher",
      { record: (row) => delete row["teacher_log_probs"] },
      "2 columns: teacher_log_probs is present, and the first record has none",
    ],
    [
      "prime-rl",
      "a logprob of the prompt",
      { record: (row) => ((row["sample"] as { ref_logprobs: number[] }).ref_logprobs[1] = -1) },
      "1 columns: sample.ref_logprobs[1] is -1, expected a logprob where it is trained, 0 elsewhere",
    ],
    [
      "prime-rl",
      "a weight where the mask is 0",
      { record: (row) => ((row["sample"] as { ref_kl_weights: number[] }).ref_kl_weights[0] = 1) },
      "1 columns: sample.ref_kl_weights[0] is 1, expected the mask's number",
    ],
    [
      "verl",
      "logprobs that are not shifted",
      { poke: (row) => [arrayAt(row, "extra_fields", "teacher_logprobs"), 15, float(-1)] },
      "1 columns: extra_fields.teacher_ids, row 15: expected zeros, because no scored id follows",
    ],
    [
      "verl-top",
      "a less probable id first",
      { poke: (row) => [arrayAt(row, "extra_fields", "teacher_logprobs"), 3 * 5, float(-0.6)] },
      "1 columns: extra_fields.teacher_ids, row 5: a less probable id stands before a more probable one",
    ],
    [
      "verl-top",
      "arrays of different shapes",
      {
        record: (row) => {
          const { extra_fields } = row as { extra_fields: { teacher_ids: { shape: number[] } } };
          extra_fields.teacher_ids.shape = [16, 2];
        },
      },
      "1 columns: extra_fields.teacher_ids and teacher_logprobs have the shapes [16,2] and [16,3], expected 16 rows",
    ],
    [
      "trl",
      "a place without the token itself",
      { poke: (row) => [arrayAt(row, "sample", "teacher_topk_ids"), 3 * 4, int(199)] },
      "1 columns: sample.teacher_topk_ids, row 3: the id 100 itself is missing",
    ],
    [
      "trl",
      "a logprob after the last id",
      { poke: (row) => [arrayAt(row, "sample", "teacher_topk_logprobs"), 3 * 4 + 3, float(-9)] },
      "1 columns: sample.teacher_topk_ids, row 3: expected -1 and -inf after the last id",
    ],
    [
      "tinker-top",
      "weights that are no shares",
      { poke: (row) => [arrayAt(row, "cross_entropy_inputs", "weights"), 3 * 2, float(0.9)] },
      "1 columns: cross_entropy_inputs.target_tokens, row 2: its weights are",
    ],
  ];
  test.each(cases)("%s: %s", async (name, _, how, wanted) => {
    const found = await details(await damage(name, how), name);
    expect(
      found.find((detail) => detail.startsWith(wanted)),
      found.join("\n"),
    ).toBeDefined();
  });

  test.each([
    [
      "tinker",
      {
        record: (row) => {
          const { advantages } = row["loss_fn_inputs"] as Record<string, { data: number[] }>;
          advantages!.data[2] = 9;
        },
      },
    ],
    ["slime", { record: (row) => ((row["teacher_log_probs"] as number[])[0] = -1) }],
    ["verl", { poke: (row) => [arrayAt(row, "extra_fields", "teacher_logprobs"), 4, float(-1)] }],
  ] as [Name, Damage][])("%s: another value than the run's", async (name, how) => {
    const file = await damage(name, how);
    expect(await details(file, name)).toEqual([]);
    expect(await details(file, name, run)).toHaveLength(1);
  });
});
