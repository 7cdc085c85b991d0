import { appendToList } from "../../../packages/python-values/src/support/append-to-list.ts";
import { type Files, readBytes, withFile } from "../disk/files.ts";
import { type LineRange, scanLines } from "../disk/line-ranges.ts";
import { rolloutIdOfLine } from "./sample-line.ts";

/** The positions of a file's lines by rollout. The file is scanned once. */
export interface RowIndex {
  /** The rollouts with lines, in the order of their first line. */
  readonly rolloutIds: readonly string[];
  /** Reads the lines of a rollout, in the order of the file. */
  read(rolloutId: string): Promise<readonly Buffer[]>;
  /** Reads the lines of several rollouts, in the order of the file. */
  readEach(rolloutIds: Iterable<string>, onLine: (line: Buffer) => void): Promise<void>;
}

/** Scans a file for the rollout of each line. */
export async function indexRows(files: Files, file: string): Promise<RowIndex> {
  const places = new Map<string, LineRange[]>();
  await scanLines(files, file, ({ bytes, start, end }) => {
    const rolloutId = rolloutIdOfLine(bytes);
    if (rolloutId === undefined) return;
    appendToList(places, rolloutId, { start, end });
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
