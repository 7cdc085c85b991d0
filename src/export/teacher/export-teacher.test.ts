import { appendFile, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ColumnSpecs } from "../../columns/index.ts";
import { writeAtomically } from "../../run/disk/write-atomically.ts";
import { writeColumnRun } from "../columns/column-run.fixture.ts";
import { arraysFileOf, type PlacedArray } from "../columns/column-sink.ts";
import { exportRun } from "../export-run.ts";
import { exporters, type ExportTarget } from "../exporters.ts";
import type { TeacherChoice } from "./teacher-export.ts";
import { teacherExports } from "./teacher-exports.ts";
import { addTeacher, taughtLogprob, taughtTop } from "./teacher-run.fixture.ts";

const routes: ColumnSpecs = { routedExperts: { layerCount: 3, perToken: 2, expertCount: 8 } };
const large: TeacherChoice = { name: "large" };
const wide: TeacherChoice = { name: "wide", hasTop: true };

let scratch = "";
let dir = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-teacher-export-"));
  dir = path.join(scratch, "run");
  await writeColumnRun(dir, {});
  await writeColumnRun(path.join(scratch, "routes"), routes);
  for (const run of [dir, path.join(scratch, "routes")]) {
    await addTeacher(run, { name: "large" });
    await addTeacher(run, { name: "wide", topCount: 3 });
  }
});
afterAll(async () => await rm(scratch, { recursive: true }));

async function exported(to: ExportTarget, teacher: TeacherChoice, run = dir) {
  const file = path.join(await mkdtemp(path.join(scratch, "export-")), to);
  const { content, summary } = await exportRun(run, to, { file, teacher });
  await writeAtomically(file, content);
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  const records = lines.map((line) => JSON.parse(line) as unknown);
  const arrays = await readFile(arraysFileOf(file)).catch(() => Buffer.alloc(0));
  return { records, summary: summary(), arrays };
}

/** An export with records of a known form. */
type Export<Row> = Omit<Awaited<ReturnType<typeof exported>>, "records"> & {
  readonly records: readonly Row[];
};

/** Returns the rows of a placed array of ids and of its twin of logprobs. */
function pairsOf(arrays: Buffer, ids: PlacedArray, logprobs: PlacedArray) {
  const [rows, width] = ids.shape as [number, number];
  expect(logprobs.shape).toEqual(ids.shape);
  expect([ids.dtype, logprobs.dtype, ids.offset % 64, logprobs.offset % 64]).toEqual([
    "int32",
    "float32",
    0,
    0,
  ]);
  const cut = ({ offset }: PlacedArray) =>
    new Uint8Array(arrays.subarray(offset, offset + rows * width * 4)).buffer;
  const [list, values] = [new Int32Array(cut(ids)), new Float32Array(cut(logprobs))];
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: width }, (_, rank) => ({
      id: list[row * width + rank]!,
      logprob: values[row * width + rank]!,
    })),
  );
}

describe("each trainer gets the teacher in its own form", () => {
  test.each(["slime", "miles"] as const)(
    "%s: a logprob for each id of the response",
    async (to) => {
      interface Row {
        readonly tokens: readonly number[];
        readonly response_length: number;
        readonly teacher_log_probs: readonly number[];
        readonly opd_reverse_kl?: unknown;
      }
      const { records, summary, arrays } = (await exported(to, large)) as Export<Row>;
      expect(summary.teacher).toEqual({ name: "large", rowCount: records.length });
      expect([records.length, arrays.length]).toEqual([13, 0]);
      for (const { tokens, response_length, teacher_log_probs, opd_reverse_kl } of records) {
        const start = tokens.length - response_length;
        expect(teacher_log_probs).toEqual(
          tokens.slice(start).map((_, index) => taughtLogprob(tokens, start + index)),
        );
        expect(opd_reverse_kl).toBeUndefined();
      }
    },
  );

  test("slime's rows keep their routes beside the teacher", async () => {
    const { records, summary } = await exported("slime", large, path.join(scratch, "routes"));
    expect(records[0]).toMatchObject({
      rollout_routed_experts: { offset: 0, dtype: "uint8" },
      teacher_log_probs: expect.any(Array) as unknown,
    });
    expect(summary).toMatchObject({ columns: { rowCount: 13 }, teacher: { rowCount: 13 } });
  });

  test("prime-rl: a logprob for each id, weights for the reference alone", async () => {
    interface Row {
      readonly sample: {
        readonly token_ids: readonly number[];
        readonly mask: readonly boolean[];
        readonly ref_logprobs: readonly number[];
        readonly ref_kl_weights: readonly number[];
        readonly rl_weights: readonly number[];
      };
    }
    const { records } = (await exported("prime-rl", large)) as Export<Row>;
    for (const { sample } of records) {
      const { token_ids: ids, mask } = sample;
      expect(sample.ref_logprobs).toEqual(
        mask.map((isTrained, token) => (isTrained ? taughtLogprob(ids, token) : 0)),
      );
      expect(sample.ref_kl_weights).toEqual(mask.map(Number));
      expect(sample.rl_weights).toEqual(mask.map(() => 0));
    }
  });

  interface Output {
    readonly prompt_ids: readonly number[];
    readonly response_ids: readonly number[];
    readonly extra_fields: {
      readonly teacher_ids: PlacedArray;
      readonly teacher_logprobs: PlacedArray;
    };
  }
  type VerlRow = Output & { readonly outputs?: readonly Output[] };

  test("verl: row i belongs to token i + 1, and the last row is zero", async () => {
    const { records, arrays } = (await exported("verl", large)) as Export<VerlRow>;
    expect(records.some(({ outputs }) => outputs?.length === 3)).toBe(true);
    for (const { prompt_ids, response_ids, extra_fields } of records.flatMap(
      (record) => record.outputs ?? [record],
    )) {
      const ids = [...prompt_ids, ...response_ids];
      const wanted = ids.map((_, row) => {
        const token = row + 1;
        if (token < prompt_ids.length || token === ids.length) return [{ id: 0, logprob: 0 }];
        return [{ id: ids[token], logprob: taughtLogprob(ids, token) }];
      });
      const { teacher_ids, teacher_logprobs } = extra_fields;
      expect(pairsOf(arrays, teacher_ids, teacher_logprobs)).toEqual(wanted);
    }
  });

  test("verl: the most probable ids, shifted alike", async () => {
    const { records, arrays } = (await exported("verl", wide)) as Export<VerlRow>;
    const [{ prompt_ids, response_ids, extra_fields }] = records as unknown as [Output];
    const ids = [...prompt_ids, ...response_ids];
    const pairs = pairsOf(arrays, extra_fields.teacher_ids, extra_fields.teacher_logprobs);
    expect(pairs[prompt_ids.length - 1]).toEqual(taughtTop(ids, prompt_ids.length, 3));
    expect(pairs.at(-2)).toEqual(taughtTop(ids, ids.length - 1, 3));
    expect(pairs.at(-1)).toEqual(Array.from({ length: 3 }, () => ({ id: 0, logprob: 0 })));
  });

  test("TRL: a sample for each row, with the token itself in each place", async () => {
    interface Row {
      readonly sample: {
        readonly input_ids: readonly number[];
        readonly completion_mask: readonly number[];
        readonly teacher_topk_ids: PlacedArray;
        readonly teacher_topk_logprobs: PlacedArray;
        readonly teacher_id: string;
      };
      readonly rollout: string;
    }
    const { records, arrays } = (await exported("trl", wide)) as Export<Row>;
    expect(records).toHaveLength(13);
    const none = { id: -1, logprob: -Infinity };
    for (const { sample } of records) {
      const { input_ids: ids, completion_mask: mask } = sample;
      const start = mask.indexOf(1);
      const wanted = ids.map((id, token) => {
        if (token < start) return [none, none, none, none];
        const top = taughtTop(ids, token, 3);
        const isIn = top.some((one) => one.id === id);
        return [...top, isIn ? none : { id, logprob: taughtLogprob(ids, token) }];
      });
      expect(pairsOf(arrays, sample.teacher_topk_ids, sample.teacher_topk_logprobs)).toEqual(
        wanted,
      );
      expect(sample.teacher_id).toBe("wide");
    }
  });

  interface TinkerRow {
    readonly loss_fn_inputs: Readonly<Record<string, { readonly data: readonly number[] }>>;
    readonly model_input: { readonly chunks: readonly { readonly tokens: readonly number[] }[] };
    readonly cross_entropy_inputs?: {
      readonly target_tokens: PlacedArray;
      readonly weights: PlacedArray;
    };
  }

  test("tinker: minus the reverse KL in the advantages", async () => {
    const { content } = await exportRun(dir, "tinker");
    const chunks: Uint8Array[] = [];
    for await (const bytes of content) chunks.push(bytes);
    const plain = Buffer.concat(chunks).toString().trim().split("\n");
    const { records } = (await exported("tinker", { ...large, weight: 0.5 })) as Export<TinkerRow>;
    for (const [index, { loss_fn_inputs: found, model_input }] of records.entries()) {
      const { loss_fn_inputs: given } = JSON.parse(plain[index]!) as TinkerRow;
      const { mask, logprobs, target_tokens } = given;
      const ids = [model_input.chunks[0]!.tokens[0]!, ...target_tokens!.data];
      expect(found["advantages"]!.data).toEqual(
        given["advantages"]!.data.map((advantage, at) => {
          if (mask!.data[at] === 0) return advantage;
          return advantage + 0.5 * (taughtLogprob(ids, at + 1) - logprobs!.data[at]!);
        }),
      );
      expect({ ...found, advantages: 0 }).toEqual({ ...given, advantages: 0 });
    }
  });

  test("tinker: the most probable ids as targets, with their shares as weights", async () => {
    const { records, arrays } = (await exported("tinker", wide)) as Export<TinkerRow>;
    const shares = [1, 2, 3].map((rank) => Math.exp(-rank / 4));
    const sum = shares.reduce((total, share) => total + share, 0);
    for (const { loss_fn_inputs, model_input, cross_entropy_inputs } of records) {
      const { mask, target_tokens } = loss_fn_inputs;
      const ids = [model_input.chunks[0]!.tokens[0]!, ...target_tokens!.data];
      const { target_tokens: targets, weights } = cross_entropy_inputs!;
      const wanted = mask!.data.map((bit, at) =>
        taughtTop(ids, at + 1, 3).map(({ id }, rank) =>
          bit === 1 ? { id, logprob: Math.fround(shares[rank]! / sum) } : { id: 0, logprob: 0 },
        ),
      );
      const found = pairsOf(arrays, targets, weights);
      for (const [row, own] of found.entries()) {
        for (const [rank, { id, logprob }] of own.entries()) {
          expect(id).toBe(wanted[row]![rank]!.id);
          expect(logprob).toBeCloseTo(wanted[row]![rank]!.logprob, 6);
        }
      }
    }
  });
});

describe("what a trainer would misread is refused", () => {
  test("trainers without a field", async () => {
    for (const [to, { logprobs }] of Object.entries(teacherExports)) {
      if (logprobs.action === "export" || to === "trl") continue;
      await expect(exportRun(dir, to as ExportTarget, { teacher: large })).rejects.toThrow(
        `Cannot export to ${to} with a teacher's logprobs: ${logprobs.why}; use a trainer that takes them (slime, miles, ` +
          "verl, prime-rl, tinker), or leave out --teacher",
      );
    }
    expect(Object.keys(teacherExports)).toEqual(Object.keys(exporters));
  });

  test.each([
    [
      "trl",
      large,
      "takes the first id at each position as the teacher's most probable one; add --teacher-top",
    ],
    ["slime", wide, "slime has no field for the most probable ids; leave out --teacher-top"],
    ["verl", { ...large, weight: 2 }, "Cannot use a teacher's weight with verl"],
    ["slime", { name: "small" }, "run has the teachers large, wide; turnwright score "],
    ["slime", { name: "../x" }, "Cannot name a teacher"],
    ["verl", { ...large, hasTop: true }, "teacherTop is absent, expected 13 from 3 on"],
  ] as const)("%s with %o", async (to, teacher, message) => {
    await expect(exported(to, teacher)).rejects.toThrow(message);
  });

  test("arrays need a file's name", async () => {
    await expect(exportRun(dir, "verl", { teacher: large })).rejects.toThrow(
      "name the file of the rows (--out FILE)",
    );
  });

  /** Returns a copy of the run with a changed first scored row. */
  async function changed(change: (line: string) => string): Promise<string> {
    const copy = await mkdtemp(path.join(scratch, "changed-"));
    await cp(dir, copy, { recursive: true });
    const file = path.join(copy, "teachers/large.jsonl");
    const [first, ...others] = (await readFile(file, "utf8")).split("\n");
    await writeFile(file, [change(first!), ...others].join("\n"));
    return copy;
  }

  test.each([
    ["not scored", () => "", "large has not scored it, and the trainer reads a logprob"],
    [
      "changed since",
      (line: string) => line.replace(/("sampleHash":")./, "$1x"),
      "large scored it before it changed",
    ],
    [
      "too few tokens",
      (line: string) => line.replace('"rows":', '"rows":1'),
      "teacherLogprobs has 113 tokens from 3 on, expected 13 from 3 on",
    ],
  ])("a row that is %s", async (_, change, message) => {
    const copy = await changed(change);
    await expect(exported("slime", large, copy)).rejects.toThrow("lamps/train/0#0, row 0");
    await expect(exported("slime", large, copy)).rejects.toThrow(message);
  });

  test("bytes were changed", async () => {
    const copy = await changed((line) => line);
    // Both teachers have the same logprobs, and bytes are found by their hash in either file.
    for (const name of ["large", "wide"]) {
      const file = path.join(copy, `columns/teacher-${name}-0-0000.bin`);
      const bytes = await readFile(file);
      // The lowest bit: the value is still a logprob.
      bytes[0]! ^= 1;
      await writeFile(file, bytes);
    }
    await expect(exported("slime", large, copy)).rejects.toThrow(
      /large's columns of lamps\/train\/0#0, row 0: the bytes of the part \w+ of teacherLogprobs were changed/,
    );
  });

  test("a last line of a row counts", async () => {
    const copy = await changed((line) => line);
    const file = path.join(copy, "teachers/large.jsonl");
    const [first] = (await readFile(file, "utf8")).split("\n");
    await appendFile(file, `${first!.replace(/("sampleHash":")./, "$1x")}\n`);
    await expect(exported("slime", large, copy)).rejects.toThrow("scored it before it changed");
  });
});
