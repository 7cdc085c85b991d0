import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readJsonl } from "../run/disk/read-jsonl.ts";
import type { Sample } from "../trajectory/sample.ts";
import { writeEveryKindRun } from "./every-kind-run.fixture.ts";
import { tableContent, writeShards } from "./export-table.ts";
import { parquetFile } from "./parquet-file.ts";
import { safetensorsShards } from "./safetensors-shards.ts";
import { python, pythonObstacle } from "../python/python.fixture.ts";

let scratch = "";
let run = "";
let samples: Sample[] = [];
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-table-"));
  run = path.join(scratch, "run");
  await writeEveryKindRun(run);
  for await (const row of readJsonl(path.join(run, "samples.jsonl"))) samples.push(row as Sample);
  // A run's rows stand in the order in which its episodes ended until it is finished.
  const place = ({ rolloutId, segment }: Sample): string => `${rolloutId} ${segment}`;
  samples = samples.toSorted((a, b) => (place(a) < place(b) ? -1 : 1));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function* each(rows: readonly Sample[]): AsyncGenerator<Sample> {
  for (const row of rows) yield await Promise.resolve(row);
}

test("a CSV has a line for each episode, and empty fields for unknown values", async () => {
  const file = path.join(scratch, "run.csv");
  await writeFile(file, tableContent(run, "csv"));
  const lines = (await readFile(file, "utf8")).split("\r\n");
  expect(lines).toHaveLength(19);
  expect(lines[0]).toBe(
    "rollout_id,group_id,task_id,task_index,sample_index,seed,reward,outcome,stop_reason,failure,turns," +
      "tool_calls,format_errors,sampled_tokens,tokens,user_calls,duration_s",
  );
  expect(lines[1]).toBe(
    "shop/test/0#0,shop/test/0,shop/test/0,0,0,40,1,completed,user-left,,2,2,0,8,14,2,0.5",
  );
  expect(lines[9]).toContain(",,failed,failure,engine/timeout,");
});

interface Header {
  readonly [name: string]: {
    readonly dtype: string;
    readonly shape: readonly number[];
    readonly data_offsets: readonly [number, number];
  };
}

describe("safetensorsShards()", () => {
  test("has every row exactly once, in shards of a limited size", async () => {
    const found: { ids: number[]; reward: number }[] = [];
    const counts: number[] = [];
    for await (const { bytes, rowCount, tokenCount } of safetensorsShards(each(samples), {
      shardTokens: 40,
    })) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const headerLength = Number(view.getBigUint64(0, true));
      const header = JSON.parse(
        Buffer.from(bytes.subarray(8, 8 + headerLength)).toString("utf8"),
      ) as Header;
      const tensor = (name: string): Uint8Array => {
        const [start, end] = header[name]!.data_offsets;
        // Copied, so that the numbers begin at the start of their buffer.
        return Uint8Array.from(bytes.subarray(8 + headerLength + start, 8 + headerLength + end));
      };
      const offsets = new BigInt64Array(tensor("row_offsets").buffer);
      const ids = new Int32Array(tensor("token_ids").buffer);
      const rewards = new Float64Array(tensor("rewards").buffer);
      for (let row = 0; row < rowCount; row++) {
        const [start, end] = [Number(offsets[row]), Number(offsets[row + 1])];
        found.push({ ids: Array.from(ids.slice(start, end)), reward: rewards[row]! });
      }
      expect(header["loss_mask"]).toMatchObject({ dtype: "U8", shape: [tokenCount] });
      expect(headerLength % 8).toBe(0);
      expect(tokenCount <= 40 || rowCount === 1).toBe(true);
      counts.push(rowCount);
    }
    expect(counts.length).toBeGreaterThan(5);
    expect(found).toEqual(
      samples.map(({ tokenIds, reward = Number.NaN }) => ({ ids: tokenIds, reward })),
    );
  });

  test("are written into an empty folder, with an index", async () => {
    const out = path.join(scratch, "shards");
    const index = await writeShards(run, out);
    expect(index.shards).toMatchObject([
      { file: "rows-00000.safetensors", rowCount: samples.length },
    ]);
    expect(JSON.parse(await readFile(path.join(out, "index.json"), "utf8"))).toEqual(index);
    await expect(writeShards(run, out)).rejects.toThrow("it is not empty, choose another --out");
  });
});

const whyNoReaders = pythonObstacle("pyarrow", "pandas", "duckdb", "datasets", "safetensors.numpy");
if (whyNoReaders !== undefined) {
  console.warn(`Skipping the readers of Parquet and safetensors: ${whyNoReaders}`);
}

describe.skipIf(whyNoReaders !== undefined)("read back by others", () => {
  test("Parquet by pyarrow, pandas, DuckDB and datasets; safetensors by its own library", async () => {
    const large = samples;
    const file = path.join(scratch, "rows.parquet");
    await writeFile(file, parquetFile(each(large)));
    const shards = path.join(scratch, "read-shards");
    await writeShards(run, shards);
    const rows = path.join(scratch, "rows.json");
    await writeFile(rows, JSON.stringify(large));
    const program = fileURLToPath(
      new URL("../../integrations/accept/read_tables.py", import.meta.url),
    );
    const said = execFileSync(python, [program, rows, file, shards], { encoding: "utf8" });
    expect(said.trim()).toBe(
      `pyarrow, pandas, duckdb, datasets, safetensors: ${samples.length} rows read back the same`,
    );
  });
});
