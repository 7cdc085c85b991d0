import { type Files, withFile } from "./files.ts";
import { startOfLastLine } from "./last-line.ts";
import { type LineRange, readLineRanges } from "./line-ranges.ts";
import { storageError } from "./storage-error.ts";
import { writeWhole } from "./write-whole.ts";

/**
 * Leaves only these lines of a file, in this order. Only what follows the last line feed, which is no whole line,
 * is cut off where it is; a file from which lines go is replaced as a whole: whoever reads it by places, or in the
 * middle of it, has the one that it was.
 *
 * @param size - The file's size in bytes.
 * @throws UsageError where the disk refuses.
 */
export async function keepLines(
  file: string,
  { files, ranges, size }: { files: Files; ranges: readonly LineRange[]; size: number },
): Promise<void> {
  const keptSize = prefixLength(ranges);
  // A last line without a line feed reaches beyond the file by that.
  if (keptSize !== undefined && keptSize >= size) return;
  try {
    await withFile(files, file, async (source) => {
      if (keptSize === (await startOfLastLine(source, size))) await cut(files, file, keptSize);
      else await writeWhole(file, readLineRanges(source, ranges), { files });
    });
  } catch (error) {
    throw storageError("write", file, error);
  }
}

/** How many bytes the lines take where they are the file's first ones. */
function prefixLength(ranges: readonly LineRange[]): number | undefined {
  let length = 0;
  for (const { start, end } of ranges) {
    if (start !== length) return undefined;
    length = end + 1;
  }
  return length;
}

async function cut(files: Files, file: string, size: number): Promise<void> {
  const open = await files.open(file, "update");
  try {
    await open.truncate(size);
    await open.sync();
  } finally {
    await open.close();
  }
}
