import path from "node:path";
import { type Files, withFile, writeAll } from "./files.ts";
import { endLastLine } from "./last-line.ts";
import { type LineRange, readLineRanges, scanLines } from "./line-ranges.ts";
import { storageError } from "./storage-error.ts";

/** Returns the name of the file to which lines are moved that are removed from a file of JSON lines. */
export function setAsideName<Stem extends string>(
  file: `${Stem}.jsonl`,
): `${Stem}.set-aside.jsonl` {
  return `${file.slice(0, -".jsonl".length) as Stem}.set-aside.jsonl`;
}

/**
 * Appends the lines of a file that are removed from it to its set-aside file.
 *
 * @param options.kept - The lines that stay in the file.
 * @returns the path of the set-aside file; `undefined` if all lines stay.
 * @throws UsageError if the disk fails.
 */
export async function setAside(
  files: Files,
  file: string,
  { to, kept }: { readonly to: string; readonly kept: readonly LineRange[] },
): Promise<string | undefined> {
  const keptStarts = new Set(kept.map(({ start }) => start));
  const left: LineRange[] = [];
  try {
    await scanLines(files, file, ({ start, end }) => {
      if (!keptStarts.has(start)) left.push({ start, end });
    });
    if (left.length === 0) return undefined;
    await withFile(files, file, async (source) => {
      const target = await files.open(to, "append");
      try {
        await endLastLine(target);
        let { size } = await target.facts();
        for await (const block of readLineRanges(source, left)) {
          await writeAll(target, block, size);
          size += block.length;
        }
        await target.sync();
      } finally {
        await target.close();
      }
      await files.syncFolder(path.dirname(to));
    });
    return to;
  } catch (error) {
    throw storageError("write", to, error);
  }
}
