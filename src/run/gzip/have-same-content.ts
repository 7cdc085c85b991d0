import { type Files, readBytes, withFile } from "../disk/files.ts";
import { contentBlockSize } from "./gzip-index.ts";

/** True if both files exist and have the same bytes. */
export async function haveSameContent(files: Files, left: string, right: string): Promise<boolean> {
  const isSame = await withFile(
    files,
    left,
    async (one) =>
      await withFile(files, right, async (other) => {
        const [{ size }, { size: otherSize }] = [await one.facts(), await other.facts()];
        if (size !== otherSize) return false;
        for (let start = 0; start < size; start += contentBlockSize) {
          const range = { start, end: Math.min(start + contentBlockSize, size) };
          const [bytes, otherBytes] = [await readBytes(one, range), await readBytes(other, range)];
          if (!bytes.equals(otherBytes)) return false;
        }
        return true;
      }),
  );
  return isSame === true;
}
