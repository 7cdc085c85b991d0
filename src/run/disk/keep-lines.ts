import { type Files, withFile } from "./files.ts";
import { type LineRange, readLineRanges } from "./line-ranges.ts";
import { storageError } from "./storage-error.ts";
import { writeAtomically } from "./write-atomically.ts";

/**
 * Removes all lines from a file except these, which stay in this order. If only lines at the end are removed, the file
 * is cut in place, which needs no disk space; readers detect that by their mark (see `FileMark`). Otherwise the file is
 * replaced, and readers keep the old one.
 *
 * @param size - The file's size in bytes.
 * @throws UsageError if the disk fails.
 */
export async function keepLines(
  file: string,
  { files, ranges, size }: { files: Files; ranges: readonly LineRange[]; size: number },
): Promise<void> {
  const keptSize = prefixLength(ranges);
  // The range of a last line without a line feed ends one byte after the file.
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

/** Returns the length in bytes of these lines if they are the first ones of the file; `undefined` otherwise. */
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
