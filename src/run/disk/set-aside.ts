import path from "node:path";
import { type Files, withFile, writeAll } from "./files.ts";
import { endLastLine } from "./last-line.ts";
import { type LineRange, readLineRanges, scanLines } from "./line-ranges.ts";
import { storageError } from "./storage-error.ts";

/** The file beside one of JSON lines that takes what cannot stay there. */
export function setAsideName<Stem extends string>(
  file: `${Stem}.jsonl`,
): `${Stem}.set-aside.jsonl` {
  return `${file.slice(0, -".jsonl".length) as Stem}.set-aside.jsonl`;
}

/**
 * Copies the lines of a file that are not to stay in it behind those that were set aside before.
 *
 * @param options.kept - The lines that stay.
 * @returns where they are; `undefined` where all stay.
 * @throws UsageError where the disk refuses.
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
