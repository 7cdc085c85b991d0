import { type Files, diskFiles, withFile } from "../disk/files.ts";
import { type LineRange, readLineRanges, scanLines } from "../disk/line-ranges.ts";
import { storageError } from "../disk/storage-error.ts";
import { writeAtomically } from "../disk/write-atomically.ts";

interface RankedRange extends LineRange {
  readonly rank: number;
}

/**
 * Sorts the lines of a file by rank; lines of equal rank keep their order. Replaces the file in one step, and only if
 * the order changes. Memory grows with the number of lines, not with their length.
 *
 * @throws UsageError if the disk fails; the file is unchanged then.
 */
export async function sortRows(
  file: string,
  rankOf: (line: Buffer) => number,
  { files = diskFiles }: { files?: Files } = {},
): Promise<void> {
  const ranges: RankedRange[] = [];
  let isSorted = true;
  try {
    await scanLines(files, file, ({ bytes, start, end }) => {
      const rank = rankOf(bytes);
      isSorted &&= rank >= (ranges.at(-1)?.rank ?? rank);
      ranges.push({ start, end, rank });
    });
    if (isSorted) return;
    const sorted = ranges.toSorted((left, right) => left.rank - right.rank);
    await withFile(files, file, async (source) => {
      await writeAtomically(file, readLineRanges(source, sorted), { files });
    });
  } catch (error) {
    throw storageError("sort", file, error);
  }
}
