import { readdir } from "node:fs/promises";
import { makeFolder } from "../files/make-folder.ts";
import path from "node:path";
import { namesOf } from "../columns/column-specs.ts";
import { UsageError } from "../errors.ts";
import { writeAtomically, writeJsonAtomically } from "../run/disk/write-atomically.ts";
import { csvFile } from "./csv-file.ts";
import { parquetFile } from "./parquet-file.ts";
import { readRunGroups } from "./read-run-groups.ts";
import { readFinished, readTableRows } from "./read-table-rows.ts";
import { safetensorsShards } from "./safetensors-shards.ts";

/** File formats that do not belong to a trainer. */
export const tableTargets = ["parquet", "csv", "safetensors"] as const;

/** One of `tableTargets`. */
export type TableTarget = (typeof tableTargets)[number];

/**
 * Yields the bytes of a run's rows as Parquet, or of its episodes as CSV.
 *
 * @throws UsageError for Parquet if the run has side columns.
 */
export async function* tableContent(
  dir: string,
  to: "parquet" | "csv",
): AsyncGenerator<Uint8Array> {
  if (to === "parquet") await requirePlainRows(dir, to);
  yield* to === "parquet" ? parquetFile(readTableRows(dir)) : csvFile(readFinished(dir));
}

/**
 * Refuses runs that a table cannot represent.
 *
 * @throws UsageError if the run has no rows, or has side columns: tables of rows have no place for them.
 */
async function requirePlainRows(dir: string, to: TableTarget): Promise<void> {
  const run = await readRunGroups(dir);
  run.requireRows();
  const names = namesOf(run.columns);
  if (names.length === 0) return;
  throw new UsageError(
    `Cannot export ${dir} as ${to}: it has the side columns ${names.join(", ")}, and a table of rows has no place for ` +
      "them; export to a trainer (--to slime, verl, skyrl, …), or read the folder by read_rows() and row_columns() of the " +
      "Python package",
  );
}

/** The content of `index.json`, which describes a folder of shards. */
interface ShardIndex {
  readonly format: 1;
  readonly shards: readonly {
    readonly file: string;
    readonly rowCount: number;
    readonly tokenCount: number;
  }[];
}

/**
 * Writes a run's rows as safetensors into a folder: `rows-00000.safetensors` and so on. Writes
 * `index.json` last, after all shards.
 * @throws UsageError if the folder is not empty or cannot be written, or if the run has side columns.
 */
export async function writeShards(dir: string, out: string): Promise<ShardIndex> {
  await requirePlainRows(dir, "safetensors");
  await makeFolder(out);
  if ((await readdir(out)).length > 0) {
    throw new UsageError(`Cannot write shards to ${out}: it is not empty, choose another --out`);
  }
  const shards: ShardIndex["shards"][number][] = [];
  for await (const { bytes, rowCount, tokenCount } of safetensorsShards(readTableRows(dir))) {
    const file = `rows-${String(shards.length).padStart(5, "0")}.safetensors`;
    await writeAtomically(path.join(out, file), once(bytes));
    shards.push({ file, rowCount, tokenCount });
  }
  const index: ShardIndex = { format: 1, shards };
  await writeJsonAtomically(path.join(out, "index.json"), index);
  return index;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}
