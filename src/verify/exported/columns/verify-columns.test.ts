import { cp, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ColumnSpecs } from "../../../columns/index.ts";
import { writeColumnRun } from "../../../export/columns/column-run.fixture.ts";
import { arraysFileOf, type PlacedArray } from "../../../export/columns/column-sink.ts";
import { exportRun } from "../../../export/export-run.ts";
import type { ExportTarget } from "../../../export/exporters.ts";
import { writeAtomically } from "../../../run/disk/write-atomically.ts";
import { verifyExport } from "../verify-export.ts";

const routedExperts = { layerCount: 3, perToken: 2, expertCount: 8 };
const sets: ColumnSpecs = { routedExperts, keptTokens: { maxCount: 4 } };
const tops: ColumnSpecs = {
  routedExperts,
  topLogprobs: { count: 2 },
  indexerTopK: { layerCount: 2, perToken: 3 },
};
const specsOf = {
  slime: sets,
  miles: tops,
  verl: tops,
  skyrl: sets,
  "prime-rl": tops,
  verifiers: sets,
  "nemo-rl": tops,
  art: tops,
} as const satisfies Partial<Record<ExportTarget, ColumnSpecs>>;
const targets = Object.keys(specsOf) as (keyof typeof specsOf)[];

let scratch = "";
const runOf = (to: keyof typeof specsOf) =>
  path.join(scratch, specsOf[to] === sets ? "sets" : "tops");
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-verify-columns-"));
  await writeColumnRun(path.join(scratch, "sets"), sets);
  await writeColumnRun(path.join(scratch, "tops"), tops);
  for (const to of targets) {
    const file = path.join(scratch, to);
    await writeAtomically(file, (await exportRun(runOf(to), to, { file })).content);
  }
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function details(file: string, to: keyof typeof specsOf, run?: string) {
  const { violations } = await verifyExport(file, to, run === undefined ? {} : { run });
  return violations.map(({ line, rule, detail }) => `${line} ${rule}: ${detail}`);
}

describe("an export with columns is sound, alone and against its run", () => {
  for (const to of targets) {
    test(to, async () => {
      const file = path.join(scratch, to);
      expect(await details(file, to)).toEqual([]);
      expect(await details(file, to, runOf(to))).toEqual([]);
    });
  }
});

interface Damage {
  /** Changes the first record, or the only object. */
  readonly record?: (record: Record<string, unknown>) => void;
  readonly arrays?: (file: string, record: Record<string, unknown>) => Promise<void>;
}

async function damage(to: keyof typeof specsOf, { record: change, arrays }: Damage) {
  const file = path.join(await mkdtemp(path.join(scratch, "damaged-")), to);
  const [first, ...others] = (await readFile(path.join(scratch, to), "utf8")).split("\n");
  const record = JSON.parse(first!) as Record<string, unknown>;
  const given = structuredClone(record);
  change?.(record);
  await writeFile(file, [JSON.stringify(record), ...others].join("\n"));
  if (to !== "nemo-rl") await cp(arraysFileOf(path.join(scratch, to)), arraysFileOf(file));
  await arrays?.(arraysFileOf(file), given);
  return file;
}

/** Overwrites a byte of an array. */
async function poke(file: string, { offset }: PlacedArray, at: number, value: number) {
  const bytes = await readFile(file);
  bytes[offset + at] = value;
  await writeFile(file, bytes);
}

/** Changes the routes of the first call of a NeMo Gym result. */
function changeText(row: Record<string, unknown>, change: (ids: Int8Array) => void): void {
  const [item] = (row["response"] as { output: { routed_experts: string }[] }).output;
  const [magic, type, shape, data] = item!.routed_experts.split(":");
  const ids = new Int8Array(Buffer.from(data!, "base64"));
  change(ids);
  const text = Buffer.from(new Uint8Array(ids.buffer)).toString("base64");
  item!.routed_experts = [magic, type, shape, text].join(":");
}

const routes = (record: Record<string, unknown>): PlacedArray =>
  record["rollout_routed_experts"] as PlacedArray;
const ids = (record: Record<string, unknown>): PlacedArray =>
  record["rollout_top_p_token_ids"] as PlacedArray;
const offsets = (record: Record<string, unknown>): PlacedArray =>
  record["rollout_top_p_token_offsets"] as PlacedArray;

describe("a damage is named", () => {
  const cases: Readonly<Record<string, [keyof typeof specsOf, Damage, string]>> = {
    "a row of routes too few": [
      "slime",
      { record: (row) => Object.assign(routes(row), { shape: [14, 3, 2] }) },
      "1 columns: rollout_routed_experts has the shape [14,3,2], expected 15 rows of layers",
    ],
    "uint16, which slime cannot pad": [
      "slime",
      { record: (row) => Object.assign(routes(row), { dtype: "uint16", shape: [15, 3, 1] }) },
      "1 columns: rollout_routed_experts has the type uint16, expected uint8 or int32",
    ],
    "a place that is no multiple of 64": [
      "slime",
      { record: (row) => Object.assign(routes(row), { offset: 1 }) },
      "1 columns: rollout_routed_experts begins at byte 1, no multiple of 64",
    ],
    "two arrays in one place": [
      "slime",
      { record: (row) => Object.assign(ids(row), { offset: 0 }) },
      "1 columns: rollout_top_p_token_ids begins at byte 0, within an array before it",
    ],
    "no array": [
      "slime",
      { record: (row) => Object.assign(row, { rollout_routed_experts: [1, 2] }) },
      "1 columns: rollout_routed_experts is [1,2], expected offset, shape and dtype of an array",
    ],
    "a row without routes": [
      "slime",
      { record: (row) => delete row["rollout_routed_experts"] },
      "2 columns: rollout_routed_experts is present, and the first record has none: the trainer looks at the first " +
        "record only",
    ],
    "an expert twice in a layer": [
      "slime",
      {
        arrays: async (file, row) =>
          await poke(file, routes(row), 8, 1).then(() => poke(file, routes(row), 9, 1)),
      },
      "1 columns: rollout_routed_experts, row 1: the expert 1 occurs twice in a layer",
    ],
    "bounds that descend": [
      "slime",
      { arrays: async (file, row) => await poke(file, offsets(row), 4, 200) },
      "1 columns: rollout_top_p_token_ids: the bounds do not divide",
    ],
    "a set without the sampled id": [
      "slime",
      { arrays: async (file, row) => await poke(file, ids(row), 0, 99) },
      "1 columns: rollout_top_p_token_ids, set 0: the sampled id 100 is not in its set [99",
    ],
    "a file that was cut": [
      "slime",
      { arrays: async (file) => await truncate(file, 64) },
      "1 columns: rollout_routed_experts ends at byte 90, and",
    ],
    "a file that is missing": [
      "slime",
      { arrays: async (file) => await rm(file) },
      "1 columns: rollout_routed_experts names an array, and",
    ],
    "bytes after the last array": [
      "slime",
      { arrays: async (file) => await writeFile(file, "x", { flag: "a" }) },
      "13 columns: ",
    ],
    "a last row that is not zero": [
      "verl",
      {
        arrays: async (file, row) =>
          await poke(file, row["routed_experts"] as PlacedArray, 15 * 6, 1),
      },
      "1 columns: routed_experts, row 15: expected zeros for the last id",
    ],
    "an id after -1 in SkyRL's support": [
      "skyrl",
      {
        arrays: async (file, batch) => {
          const [first] = batch["rollout_sample_support"] as PlacedArray[];
          await poke(file, first!, 4 * 4 * 4 + 12, 5).then(() =>
            Promise.all([13, 14, 15].map((at) => poke(file, first!, 4 * 4 * 4 + at, 0))),
          );
        },
      },
      "1 columns: rollout_sample_support: row 4 has an id after -1",
    ],
    "a response without its row in SkyRL": [
      "skyrl",
      {
        record: (batch) => {
          const [first] = batch["rollout_expert_indices"] as { shape: number[] }[];
          first!.shape[0] = 5;
        },
      },
      "1 columns: rollout_expert_indices has the shape [5,3,2], expected 15 rows of layers",
    ],
    "other layers than in the first array": [
      "prime-rl",
      {
        record: (row) => {
          const { routed_experts } = row["sample"] as { routed_experts: { shape: number[] } };
          routed_experts.shape = [16, 2, 3];
        },
      },
      "2 columns: sample.routed_experts has rows of 3x2, and the first array of the file 2x3",
    ],
    "tops for an id of the environment": [
      "miles",
      {
        record: (row) => {
          const { opd_student_top_logprobs: found } = row["metadata"] as Record<string, object[][]>;
          found![4]!.push([-1, 5, null]);
        },
      },
      "1 columns: metadata.opd_student_top_logprobs[4] is [[-1,5,null]], expected [logprob, id, null], best first",
    ],
    "a call's routes without the last row": [
      "nemo-rl",
      {
        record: (row) => {
          const [item] = (row["response"] as { output: { routed_experts: string }[] }).output;
          item!.routed_experts = item!.routed_experts.replace(":7x3x2:", ":6x3x2:");
        },
      },
      "1 columns: response.output[0].routed_experts has 6 rows, expected 7: one for each id of the call",
    ],
    "an expert twice in NeMo-RL's text": [
      "nemo-rl",
      { record: (row) => changeText(row, (ids) => ids.copyWithin(8, 9, 10)) },
      "1 columns: response.output[0].routed_experts, row 1: the expert",
    ],
    "a missing row before the last one": [
      "nemo-rl",
      { record: (row) => changeText(row, (ids) => ids.fill(-1, 0, 6)) },
      "1 columns: response.output[0].routed_experts, row 0: the id -1 is negative",
    ],
    "letters that are no base64": [
      "nemo-rl",
      {
        record: (row) => {
          const [item] = (row["response"] as { output: { routed_experts: string }[] }).output;
          item!.routed_experts = `${item!.routed_experts.slice(0, -4)}????`;
        },
      },
      "1 columns: response.output[0].routed_experts has 39 bytes, expected 42",
    ],
  };
  for (const [name, [to, how, wanted]] of Object.entries(cases)) {
    test(`${to}: ${name}`, async () => {
      const found = await details(await damage(to, how), to);
      expect(
        found.find((detail) => detail.startsWith(wanted)),
        found.join("\n"),
      ).toBeDefined();
    });
  }

  test("other routes than the run's", async () => {
    const file = await damage("slime", {
      arrays: async (file, row) => await poke(file, routes(row), 8, 7),
    });
    expect(await details(file, "slime", runOf("slime"))).toContain(
      "1 run: the array of shape [15,3,2] at byte 0 is not the one that the run gives",
    );
  });
});
