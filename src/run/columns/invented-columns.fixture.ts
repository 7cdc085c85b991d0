import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { decodeRagged } from "../../columns/ragged-rows.ts";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import type { ColumnSource } from "../../columns/column-source.ts";
import { inventedRoutes, inventedSet } from "../../testing/column-engine.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { openColumnFolder } from "./column-folder.ts";

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
export async function checkInventedRow(
  { columns, tokenIds, lossMask }: Sample,
  source: ColumnSource,
): Promise<number> {
  const { routedExperts = [], keptTokens = [], topLogprobs = [] } = columns!;
  let next = 0;
  for (const part of routedExperts) {
    const { from, rows: count, policyVersion } = part;
    expect(from).toBe(next);
    next += count;
    const shape = inventedSpecs.routedExperts;
    const wanted = inventedRoutes(tokenIds, { from, rows: count, policyVersion, shape });
    expect(Buffer.from(await source.read(part))).toEqual(Buffer.from(wanted));
  }
  expect(next).toBe(tokenIds.length - 1);
  for (const part of keptTokens) {
    const { counts, ids } = decodeRagged(await source.read(part), {
      rows: part.rows,
      hasLogprobs: false,
    });
    const own = tokenIds.slice(part.from, part.from + part.rows);
    expect([...ids]).toEqual(own.flatMap((id) => inventedSet(id, 4)));
    expect([...counts]).toEqual(own.map((id) => inventedSet(id, 4).length));
  }
  const sampledCount = lossMask.filter((bit) => bit === 1).length;
  expect(keptTokens.reduce((sum, part) => sum + part.rows, 0)).toBe(sampledCount);
  expect(topLogprobs.reduce((sum, part) => sum + part.rows, 0)).toBe(sampledCount);
  return routedExperts.length + keptTokens.length + topLogprobs.length;
}
