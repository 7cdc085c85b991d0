import { open, rename } from "node:fs/promises";
import { readLines } from "./read-jsonl.ts";

interface RowPlace {
  /** In bytes. */
  readonly offset: number;
  readonly length: number;
  readonly rank: number;
}

/**
 * Rewrites a file of lines in the order of their ranks; lines of equal rank keep their order. The file
 * is replaced as a whole, and only where its order is another. Memory grows with the number of lines,
 * not with their length.
 */
export async function sortRows(file: string, rankOf: (line: string) => number): Promise<void> {
  const places: RowPlace[] = [];
  let offset = 0;
  let isSorted = true;
  for await (const line of readLines(file)) {
    const length = Buffer.byteLength(line) + 1;
    const rank = rankOf(line);
    isSorted &&= rank >= (places.at(-1)?.rank ?? rank);
    places.push({ offset, length, rank });
    offset += length;
  }
  if (isSorted) return;
  const next = `${file}.next`;
  await copyRows(
    file,
    next,
    places.toSorted((left, right) => left.rank - right.rank),
  );
  await rename(next, file);
}

async function copyRows(from: string, to: string, places: readonly RowPlace[]): Promise<void> {
  await using source = await open(from, "r");
  await using target = await open(to, "w");
  for (const { offset, length } of places) {
    const row = Buffer.allocUnsafe(length);
    await source.read(row, 0, length, offset);
    await target.writeFile(row);
  }
  await target.datasync();
}
