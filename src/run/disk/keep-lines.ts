import { type Files, withFile } from "./files.ts";
import { type LineRange, readLineRanges } from "./line-ranges.ts";
import { storageError } from "./storage-error.ts";
import { writeAtomically } from "./write-atomically.ts";

/**
 * Leaves only these lines of a file, in this order. A file of which only the end goes is cut where it is, however long
 * it is and full the disk: whoever follows it sees that by its mark (see `FileMark`). Any other is replaced as a whole:
 * whoever reads it by places has the one that it was.
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
    if (keptSize === undefined) {
      await withFile(files, file, async (source) => {
        await writeAtomically(file, readLineRanges(source, ranges), { files });
      });
    } else {
      await cut(files, file, keptSize);
    }
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
