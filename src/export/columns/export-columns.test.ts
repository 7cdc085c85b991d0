import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ColumnSpecs } from "../../columns/index.ts";
import { writeAtomically } from "../../run/disk/write-atomically.ts";
import type { ExportNote } from "../exporter.ts";
import { exportRun } from "../export-run.ts";
import type { ExportTarget } from "../exporters.ts";
import { writeColumnRun } from "./column-run.fixture.ts";
import { arraysFileOf, type PlacedArray } from "./column-sink.ts";
import type { ColumnTruth } from "./invented-columns.fixture.ts";

const experts = { layerCount: 3, perToken: 2, expertCount: 8 };
const routesOnly: ColumnSpecs = { routedExperts: experts };
const wide: ColumnSpecs = { routedExperts: { ...experts, expertCount: 300 } };
const sets: ColumnSpecs = { routedExperts: experts, keptTokens: { maxCount: 4 } };
const tops: ColumnSpecs = {
  routedExperts: experts,
  topLogprobs: { count: 2 },
  indexerTopK: { layerCount: 2, perToken: 3 },
};

let scratch = "";
const runs = new Map<
  ColumnSpecs,
  { readonly dir: string; readonly truth: readonly ColumnTruth[] }
>();
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-columns-"));
  for (const [index, specs] of [routesOnly, wide, sets, tops].entries()) {
    const dir = path.join(scratch, `run${index}`);
    runs.set(specs, { dir, truth: await writeColumnRun(dir, specs) });
  }
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

type Records = readonly Readonly<Record<string, unknown>>[];

async function exported(to: ExportTarget, specs: ColumnSpecs) {
  const { dir, truth } = runs.get(specs)!;
  const file = path.join(scratch, `${to}.rows`);
  const notes: ExportNote[] = [];
  const { content, summary } = await exportRun(dir, to, {
    file,
    onNote: (note) => notes.push(note),
  });
  await writeAtomically(file, content);
  const text = await readFile(file, "utf8");
  const records = (
    to === "skyrl"
      ? [JSON.parse(text)]
      : text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
  ) as Records;
  const arrays = await readFile(arraysFileOf(file)).catch(() => Buffer.alloc(0));
  return { records, notes, summary: summary(), arrays, truth };
}

/** Returns the values of a placed array, in one list. */
function valuesOf(arrays: Buffer, { offset, shape, dtype }: PlacedArray): readonly number[] {
  const count = shape.reduce((product, length) => product * length, 1);
  const types = {
    uint8: Uint8Array,
    int8: Int8Array,
    int16: Int16Array,
    uint16: Uint16Array,
    int32: Int32Array,
    float32: Float32Array,
  };
  const bytes = new Uint8Array(
    arrays.subarray(offset, offset + count * types[dtype].BYTES_PER_ELEMENT),
  );
  return [...new types[dtype](bytes.buffer)];
}

const truthOf = (truth: readonly ColumnTruth[], rolloutId: string, segment = 0): ColumnTruth =>
  truth.find((row) => row.rolloutId === rolloutId && row.segment === segment)!;

describe("slime", () => {
  test("routes have a row for each id but the last, as bytes, each array at a multiple of 64", async () => {
    const { records, arrays, truth, summary } = await exported("slime", routesOnly);
    expect(records).toHaveLength(13);
    for (const record of records) {
      const { rollout, lineage } = record["metadata"] as {
        rollout: string;
        lineage?: { row: number };
      };
      const placed = record["rollout_routed_experts"] as PlacedArray;
      const { routedExperts } = truthOf(truth, rollout, lineage?.row);
      expect(placed.dtype).toBe("uint8");
      expect(placed.offset % 64).toBe(0);
      expect(placed.shape).toEqual([(record["tokens"] as readonly number[]).length - 1, 3, 2]);
      expect(valuesOf(arrays, placed)).toEqual(routedExperts!.flat(2));
    }
    expect(summary.columns).toEqual({
      rowCount: 13,
      byteCount: arrays.length,
      mixedRowCount: 1,
      leftOut: [],
    });
  });

  test("ids of the environment that no engine computed are left out, and reported", async () => {
    const { records, notes } = await exported("slime", routesOnly);
    expect(notes.filter(({ kind }) => kind === "uncomputedTail")).toEqual([
      { rolloutId: "lamps/train/1#0", kind: "uncomputedTail", action: "cut", tokenCount: 2 },
    ]);
    const cut = records.find(
      ({ metadata }) => (metadata as { rollout: string }).rollout === "lamps/train/1#0",
    )!;
    expect(cut["tokens"]).toEqual([1, 2, 11, 100, 101, 102, 60, 61, 103, 104]);
    expect(cut["loss_mask"]).toEqual([1, 1, 1, 0, 0, 1, 1]);
    expect(cut["response_length"]).toBe(7);
  });

  test("above 256 experts, routes are int32", async () => {
    const { records, arrays, truth } = await exported("slime", wide);
    const placed = records[0]!["rollout_routed_experts"] as PlacedArray;
    expect(placed.dtype).toBe("int32");
    const { routedExperts } = truthOf(truth, "lamps/train/0#0");
    expect(valuesOf(arrays, placed)).toEqual(routedExperts!.flat(2));
    expect(Math.max(...routedExperts!.flat(2))).toBeGreaterThan(255);
  });

  test("kept tokens are ragged over the response, empty where the environment spoke", async () => {
    const { records, arrays, truth } = await exported("slime", sets);
    for (const record of records) {
      const { rollout, lineage } = record["metadata"] as {
        rollout: string;
        lineage?: { row: number };
      };
      const { keptTokens } = truthOf(truth, rollout, lineage?.row);
      const length = record["response_length"] as number;
      const start = (record["tokens"] as readonly number[]).length - length;
      const ids = valuesOf(arrays, record["rollout_top_p_token_ids"] as PlacedArray);
      const offsets = valuesOf(arrays, record["rollout_top_p_token_offsets"] as PlacedArray);
      expect(offsets).toHaveLength(length + 1);
      const found = Array.from({ length }, (_, at) => ids.slice(offsets[at], offsets[at + 1]));
      expect(found).toEqual(keptTokens!.slice(start, start + length));
    }
  });

  test("tops and positions have no field: they are left out of all rows", async () => {
    const { summary, records } = await exported("slime", tops);
    expect(summary.columns?.leftOut).toEqual(["topLogprobs", "indexerTopK"]);
    expect(Object.keys(records[0]!)).not.toContain("rollout_indexer_topk");
  });
});

test("miles: routes and positions are int32, tops are SGLang's lists over the response", async () => {
  const { records, arrays, truth } = await exported("miles", tops);
  const [first] = records;
  const { routedExperts, indexerTopK, topLogprobs } = truthOf(truth, "lamps/train/0#0");
  const routes = first!["rollout_routed_experts"] as PlacedArray;
  const positions = first!["rollout_indexer_topk"] as PlacedArray;
  expect([routes.dtype, routes.shape]).toEqual(["int32", [15, 3, 2]]);
  expect(valuesOf(arrays, routes)).toEqual(routedExperts!.flat(2));
  expect([positions.dtype, positions.shape]).toEqual(["int32", [15, 2, 3]]);
  expect(valuesOf(arrays, positions)).toEqual(indexerTopK!.flat(2));
  const { opd_student_top_logprobs: found } = first!["metadata"] as Record<string, unknown>;
  expect(found).toEqual(
    topLogprobs!.slice(3).map((pairs) => pairs.map(([logprob, id]) => [logprob, id, null])),
  );
});

test("verl: a row for each id, the last one zero, for each output of an attempt", async () => {
  const { records, arrays, truth } = await exported("verl", routesOnly);
  const outputs = records.flatMap((record) => {
    const list = (record["outputs"] ?? [record]) as Records;
    return list.map((output, row) => ({ output, row }));
  });
  for (const { output, row } of outputs) {
    const { rollout_id: rollout } = output["extra_fields"] as { rollout_id: string };
    const placed = output["routed_experts"] as PlacedArray;
    const length = (output["prompt_ids"] as []).length + (output["response_ids"] as []).length;
    expect([placed.dtype, placed.shape]).toEqual(["uint8", [length, 3, 2]]);
    const wanted = truthOf(truth, rollout, row).routedExperts!.flat(2);
    expect(valuesOf(arrays, placed)).toEqual([...wanted, 0, 0, 0, 0, 0, 0]);
  }
  expect(outputs).toHaveLength(15);
});

test("verl and prime-rl: above 256 experts, routes are int16", async () => {
  const verl = await exported("verl", wide);
  expect((verl.records[0]!["routed_experts"] as PlacedArray).dtype).toBe("int16");
  const { records, arrays, truth } = await exported("prime-rl", wide);
  const { routed_experts: placed } = records[0]!["sample"] as { routed_experts: PlacedArray };
  expect([placed.dtype, placed.shape]).toEqual(["int16", [16, 3, 2]]);
  const wanted = truthOf(truth, "lamps/train/0#0").routedExperts!.flat(2);
  expect(valuesOf(arrays, placed)).toEqual([...wanted, 0, 0, 0, 0, 0, 0]);
});

test("SkyRL: routes reach the last trained id, support has -1 after the kept ids", async () => {
  const { records, arrays, truth } = await exported("skyrl", sets);
  const [batch] = records;
  const places = batch!["rollout_expert_indices"] as readonly PlacedArray[];
  const supports = batch!["rollout_sample_support"] as readonly PlacedArray[];
  const { routedExperts, keptTokens } = truthOf(truth, "lamps/train/0#0");
  expect([places.length, supports.length]).toEqual([15, 15]);
  expect([places[0]!.dtype, places[0]!.shape]).toEqual(["uint8", [15, 3, 2]]);
  expect(valuesOf(arrays, places[0]!)).toEqual(routedExperts!.flat(2));
  expect(supports[0]!.shape).toEqual([13, 4]);
  expect(valuesOf(arrays, supports[0]!)).toEqual(
    keptTokens!.slice(3).flatMap((ids) => [...ids, -1, -1, -1, -1].slice(0, 4)),
  );
});

test("verifiers: nodes have the rows of their own ids, the last one has a copy; masks are of sampled ids", async () => {
  const { records, arrays, truth } = await exported("verifiers", sets);
  const nodes = records[0]!["nodes"] as readonly {
    readonly sampled: boolean;
    readonly routed_experts: PlacedArray;
    readonly sampling_mask?: { readonly ids: PlacedArray; readonly counts: PlacedArray };
  }[];
  const { routedExperts, keptTokens } = truthOf(truth, "lamps/train/0#0");
  const rows = nodes.flatMap((node) => valuesOf(arrays, node.routed_experts));
  expect(rows).toEqual([...routedExperts!, routedExperts!.at(-1)!].flat(2));
  expect(nodes.map((node) => node.routed_experts.shape[0])).toEqual([3, 4, 2, 2, 2, 3]);
  const masks = nodes.flatMap((node) => node.sampling_mask ?? []);
  expect(masks.flatMap(({ ids }) => valuesOf(arrays, ids))).toEqual(keptTokens!.flat());
  expect(masks.flatMap(({ counts }) => valuesOf(arrays, counts))).toEqual(
    keptTokens!.map((ids) => ids.length).filter((count) => count > 0),
  );
});

test("ART: each choice has the rows of its prompt and its ids but the last, in one array a row", async () => {
  const { records, arrays, truth } = await exported("art", wide);
  const choices = (records[0]!["messages_and_choices"] as Records).filter(
    (one) => "finish_reason" in one,
  );
  const routes = choices.map(
    (one) => (one["art_moe_routing"] as { routed_experts: PlacedArray }).routed_experts,
  );
  expect(routes.map(({ offset, shape, dtype }) => [offset, shape[0], dtype])).toEqual([
    [0, 6, "uint16"],
    [0, 10, "uint16"],
    [0, 15, "uint16"],
  ]);
  const wanted = truthOf(truth, "lamps/train/0#0").routedExperts!.flat(2);
  expect(valuesOf(arrays, routes[2]!)).toEqual(wanted);
});

test("NeMo-RL: each item has signed rows for prompt and output, the last of the last call is -1", async () => {
  const { records, truth, summary } = await exported("nemo-rl", routesOnly);
  const { output } = records[0]!["response"] as { output: readonly { routed_experts: string }[] };
  const wanted = truthOf(truth, "lamps/train/0#0").routedExperts!;
  const texts = output.map((item) => item.routed_experts.split(":"));
  expect(texts.map((parts) => parts.slice(0, 3).join(":"))).toEqual([
    "nrlre1:int8:7x3x2",
    "nrlre1:int8:11x3x2",
    "nrlre1:int8:16x3x2",
  ]);
  const lists = texts.map((parts) => [
    ...new Int8Array(new Uint8Array(Buffer.from(parts[3]!, "base64")).buffer),
  ]);
  expect(lists[0]).toEqual(wanted.slice(0, 7).flat(2));
  expect(lists[2]).toEqual([...wanted.flat(2), -1, -1, -1, -1, -1, -1]);
  expect(summary.columns).toEqual({ rowCount: 12, mixedRowCount: 1, leftOut: [] });
});
