import { type Files, readBytes, withFile } from "./files.ts";
import { type LineRange, scanLines } from "./line-ranges.ts";
import { rolloutIdOfLine } from "./sample-line.ts";

/** The lines of a file by their rollouts: the file is gone through once, however many are read. */
export interface RowIndex {
  /** The lines of a rollout, in the order of the file. */
  read(rolloutId: string): Promise<readonly Buffer[]>;
}

/** Finds out whose each line of a run's file is. */
export async function indexRows(files: Files, file: string): Promise<RowIndex> {
  const places = new Map<string, LineRange[]>();
  await scanLines(files, file, ({ bytes, start, end }) => {
    const rolloutId = rolloutIdOfLine(bytes);
    if (rolloutId === undefined) return;
    const others = places.get(rolloutId);
    if (others === undefined) places.set(rolloutId, [{ start, end }]);
    else others.push({ start, end });
  });
  return {
    async read(rolloutId) {
      const lines: Buffer[] = [];
      await withFile(files, file, async (open) => {
        for (const range of places.get(rolloutId) ?? []) lines.push(await readBytes(open, range));
      });
      return lines;
    },
  };
}
