import { type Files, readBytes, withFile } from "../disk/files.ts";
import { type LineRange, scanLines } from "../disk/line-ranges.ts";
import { rolloutIdOfLine } from "./sample-line.ts";

/** The lines of a file by their rollouts: the file is gone through once, however many are read. */
export interface RowIndex {
  /** The rollouts that have lines, in the order of their first ones. */
  readonly rolloutIds: readonly string[];
  /** The lines of a rollout, in the order of the file. */
  read(rolloutId: string): Promise<readonly Buffer[]>;
  /** Goes through the lines of several rollouts, in the order of the file. */
  readEach(rolloutIds: Iterable<string>, onLine: (line: Buffer) => void): Promise<void>;
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
  const readEach: RowIndex["readEach"] = async (rolloutIds, onLine) => {
    const ranges = Array.from(rolloutIds, (rolloutId) => places.get(rolloutId) ?? []).flat();
    await withFile(files, file, async (open) => {
      for (const range of ranges.toSorted((one, other) => one.start - other.start)) {
        onLine(await readBytes(open, range));
      }
    });
  };
  return {
    get rolloutIds() {
      return [...places.keys()];
    },
    async read(rolloutId) {
      const lines: Buffer[] = [];
      await readEach([rolloutId], (line) => lines.push(line));
      return lines;
    },
    readEach,
  };
}
