import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import type { ColumnSource } from "../../columns/column-source.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { openColumnFolder } from "./column-folder.ts";
import { inventedFaults } from "./invented-faults.fixture.ts";

/** Columns that `withInventedColumns()` returns. */
export const inventedSpecs = {
  routedExperts: { layerCount: 3, perToken: 2, expertCount: 8 },
  keptTokens: { maxCount: 4 },
  topLogprobs: { count: 2 },
} satisfies ColumnSpecs;

/** Reads the rows of a run's folder. */
export async function readRows(dir: string): Promise<readonly Sample[]> {
  const text = await readFile(path.join(dir, "samples.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Sample);
}

/** Reads each row's columns from a run's folder, and compares them with the invented ones. Returns the number of parts. */
export async function checkInvented(dir: string, rows: readonly Sample[]): Promise<number> {
  await using source = openColumnFolder(dir);
  let partCount = 0;
  for (const row of rows) partCount += await checkInventedRow(row, source);
  return partCount;
}

/** Compares the columns of a row with the invented ones. Returns the number of parts. */
export async function checkInventedRow(row: Sample, source: ColumnSource): Promise<number> {
  expect(await inventedFaults(row, { source, specs: inventedSpecs })).toEqual([]);
  return Object.values(row.columns!).flat().length;
}
