import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { columnNames, type ColumnName } from "../../columns/column-specs.ts";
import { createColumnPart, type ColumnPart } from "../../columns/column-part.ts";
import type { ColumnSource } from "../../columns/column-source.ts";
import { bytesAtOnce } from "../../columns/hash-in-turns.ts";
import { encodeRagged } from "../../columns/ragged-rows.ts";
import { UsageError } from "../../errors.ts";
import { OpenColumns } from "../../run/columns/open-columns.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import type { Sample } from "../../trajectory/sample.ts";
import {
  addColumns,
  expertsAt,
  keptAt,
  topAt,
  viewedSpecs,
  writeViewedColumns,
} from "../viewed-columns.fixture.ts";
import { makeEpisode, makeSample, viewedModel, writeViewedRun } from "../viewed-run.fixture.ts";
import { checkPartHashes } from "./check-part-hashes.ts";
import { readParts, readPartsOfLine } from "./read-parts.ts";
import { readIdRow, readLayerRow } from "./read-token-column.ts";
import { RowSource } from "./row-source.ts";
import { RunIndex } from "./run-index.ts";
import { SideColumnSource } from "./side-column-source.ts";

const rolloutId = "shop/test/0#0";
let scratch = "";
let sample: Sample;
let parts: readonly ColumnPart[] = [];
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-viewed-columns-"));
  const codec = await loadTokenCodec(viewedModel);
  ({ sample, parts } = addColumns(
    await makeSample(codec, rolloutId, [
      { text: "<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n" },
      { text: "Good morning.<|im_end|>", version: "7" },
      { text: "\n<|im_start|>user\nBye.<|im_end|>\n<|im_start|>assistant\n" },
      { text: "Goodbye!", version: "7" },
    ]),
  ));
  await codec.close?.();
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function openRun(name: string): Promise<RunIndex> {
  const dir = path.join(scratch, name);
  await writeViewedRun(dir, [{ row: makeEpisode(rolloutId, [{}, {}]), samples: [sample] }]);
  await writeViewedColumns(dir, parts);
  return await RunIndex.open(dir, { key: "run" });
}

function addressOf(name: ColumnName) {
  return { rolloutId, row: 0, name };
}

/** Reads parts from memory, and notes what was read. */
function memorySource(bytes: Uint8Array): ColumnSource & { readonly reads: [number, number][] } {
  const reads: [number, number][] = [];
  return {
    reads,
    read: async (part, { start, end } = { start: 0, end: part.size }) => {
      reads.push([start, end]);
      return await Promise.resolve(bytes.subarray(start, end));
    },
  };
}

test("reads the values of each token that has a row", async () => {
  const run = await openRun("values");
  expect(run.facts.columns).toEqual(viewedSpecs);
  await using columns = new OpenColumns();
  const source = new SideColumnSource(new RowSource(), columns);
  for (const [token, id] of sample.tokenIds.entries()) {
    const isComputed = token < sample.tokenIds.length - 1;
    const isSampled = sample.lossMask[token] === 1;
    expect(await source.token(run, addressOf("routedExperts"), token)).toEqual(
      isComputed
        ? { kind: "layers", layers: expertsAt(token), perToken: 2, policyVersion: "7" }
        : undefined,
    );
    const kept = await source.token(run, addressOf("keptTokens"), token);
    const top = await source.token(run, addressOf("topLogprobs"), token);
    if (!isSampled) {
      expect([kept, top]).toEqual([undefined, undefined]);
      continue;
    }
    const ids = keptAt(token, id);
    expect(kept).toMatchObject({ kind: "tokens", ids, count: ids.length, policyVersion: "7" });
    expect(kept).not.toHaveProperty("logprobs");
    expect(top).toMatchObject({ ids: topAt(token, id), logprobs: [-0.5, -2], count: 2 });
    expect(kept).toHaveProperty(
      "pieces",
      ids
        .toSorted((left, right) => left - right)
        .map((own) => [own, expect.any(String), expect.any(String)]),
    );
  }
  expect(await source.token(run, addressOf("indexerTopK"), 3)).toMatchObject({
    layers: [Array.from({ length: 32 }, (_, index) => 3 + index)],
    perToken: 40,
  });
});

test("compares the bytes of a column with their hashes, and names changed and missing parts", async () => {
  const run = await openRun("checked");
  await using columns = new OpenColumns();
  const source = new SideColumnSource(new RowSource(), columns);
  for (const name of columnNames) {
    const own = sample.columns![name]!;
    expect(await source.check(run, addressOf(name))).toEqual({
      partCount: 2,
      byteCount: own[0]!.size + own[1]!.size,
      faults: [],
    });
  }
  const file = path.join(run.dir, "columns/start-0-0000.bin");
  {
    await using written = await open(file, "r+");
    await written.write(Buffer.from([9]), 0, 1, 0);
  }
  const [first] = sample.columns!.routedExperts!;
  expect(await source.check(run, addressOf("routedExperts"))).toMatchObject({
    faults: [
      `the part of tokens 0 to ${first!.rows - 1} was changed: its bytes do not have the hash ${first!.hash}`,
    ],
  });
  const index = path.join(run.dir, "columns/start-0.jsonl");
  const lines = (await readFile(index, "utf8")).split("\n");
  await writeFile(index, lines.slice(1).join("\n"));
  await using laterColumns = new OpenColumns();
  const later = new SideColumnSource(new RowSource(), laterColumns);
  expect(await later.check(run, addressOf("routedExperts"))).toMatchObject({
    partCount: 2,
    faults: [expect.stringMatching(`^Cannot read the column part ${first!.hash} from `)],
  });
});

test("has no values and no check of a column that the row lacks", async () => {
  const dir = path.join(scratch, "plain");
  const { columns: _columns, ...plain } = sample;
  await writeViewedRun(dir, [{ row: makeEpisode(rolloutId, [{}, {}]), samples: [plain] }]);
  const run = await RunIndex.open(dir, { key: "run" });
  expect(run.facts).not.toHaveProperty("columns");
  await using columns = new OpenColumns();
  const source = new SideColumnSource(new RowSource(), columns);
  expect(await source.token(run, addressOf("keptTokens"), 20)).toBeUndefined();
  expect(await source.check(run, addressOf("keptTokens"))).toBeUndefined();
});

test("reads only the bytes of the token's row", async () => {
  const bytes = Uint8Array.from({ length: 4 * 12 }, (_, index) => index);
  const part = createColumnPart({ from: 5, rows: 4, policyVersion: "", bytes });
  const specs = { routedExperts: { layerCount: 4, perToken: 3, expertCount: 256 } };
  const routes = memorySource(bytes);
  expect(await readLayerRow(routes, part, { name: "routedExperts", specs, row: 1 })).toEqual({
    layers: [
      [12, 13, 14],
      [15, 16, 17],
      [18, 19, 20],
      [21, 22, 23],
    ],
    perToken: 3,
  });
  expect(routes.reads).toEqual([[12, 24]]);
  const rows = { counts: Uint32Array.of(2, 3, 1), ids: Int32Array.of(1, 2, 3, 4, 5, 6) };
  const encoded = encodeRagged({ ...rows, logprobs: Float32Array.of(-1, -2, -3, -4, -5, -6) });
  const tops = memorySource(encoded);
  const named = createColumnPart({ from: 5, rows: 3, policyVersion: "", bytes: encoded });
  expect(await readIdRow(tops, named, { hasLogprobs: true, row: 1 })).toEqual({
    ids: [3, 4, 5],
    logprobs: [-3, -4, -5],
    count: 3,
  });
  expect(tops.reads).toEqual([
    [0, 8],
    [20, 32],
    [44, 56],
  ]);
});

test("reads the first thousand ids of a large set", async () => {
  const ids = Int32Array.from({ length: 3000 }, (_, index) => index);
  const bytes = encodeRagged({ counts: Uint32Array.of(1500, 1500), ids });
  const part = createColumnPart({ from: 0, rows: 2, policyVersion: "", bytes });
  const found = await readIdRow(memorySource(bytes), part, { hasLogprobs: false, row: 1 });
  expect(found).toEqual({ ids: [...ids.subarray(1500, 2500)], count: 1500 });
});

test("refuses a part with another size than its rows", async () => {
  const bytes = encodeRagged({ counts: Uint32Array.of(9, 1), ids: Int32Array.of(1, 2) });
  const part = createColumnPart({ from: 0, rows: 2, policyVersion: "", bytes });
  const source = memorySource(bytes);
  const ragged = { hasLogprobs: false, row: 0 };
  await expect(readIdRow(source, part, ragged)).rejects.toThrow(UsageError);
  await expect(readIdRow(source, { ...part, rows: 5 }, ragged)).rejects.toThrow(
    "its 16 bytes are not those of 5 rows from token 0 on",
  );
  const specs = { routedExperts: { layerCount: 1, perToken: 3, expertCount: 8 } };
  const layers = { name: "routedExperts", specs, row: 0 } as const;
  await expect(readLayerRow(source, part, layers)).rejects.toThrow("Cannot read the column part");
});

test("reads a part of several slices, and hashes all of them", async () => {
  const bytes = Uint8Array.from({ length: 2 * bytesAtOnce + 5 }, (_, index) => index % 251);
  const part = createColumnPart({ from: 0, rows: 1, policyVersion: "", bytes });
  const source = memorySource(bytes);
  expect(await checkPartHashes(source, [part])).toEqual({
    partCount: 1,
    byteCount: bytes.length,
    faults: [],
  });
  expect(source.reads).toEqual([
    [0, bytesAtOnce],
    [bytesAtOnce, 2 * bytesAtOnce],
    [2 * bytesAtOnce, 2 * bytesAtOnce + 5],
  ]);
});

test("reads the parts of a row, and leaves out what is no part", () => {
  const part = { from: 0, rows: 2, policyVersion: "", size: 8, hash: "ab".repeat(16) };
  const broken = [null, 5, { ...part, rows: "2" }, { ...part, from: -1 }];
  expect(readParts({ keptTokens: [part, ...broken], other: [part], topLogprobs: 3 })).toEqual({
    keptTokens: [part],
  });
  expect(readParts(undefined)).toBeUndefined();
  const line = Buffer.from(`{"tokenIds":[1],"columns":${JSON.stringify({ keptTokens: [part] })}}`);
  expect(readPartsOfLine(line)).toEqual({ keptTokens: [part] });
  expect(readPartsOfLine(Buffer.from('{"tokenIds":[1]}'))).toBeUndefined();
});
