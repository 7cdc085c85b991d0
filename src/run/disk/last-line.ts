import { type OpenFile, readBytes, writeAll } from "./files.ts";

const lineFeed = 0x0a;
const blockSize = 64 * 1024;

/**
 * Puts the end of a file of JSON lines in order: a last line that lacks only its line feed is given
 * it, one that is torn is cut off.
 */
export async function endLastLine(file: OpenFile): Promise<void> {
  const { size } = await file.facts();
  const start = await startOfLastLine(file, size);
  if (start === size) return;
  if (isJson(await readBytes(file, { start, end: size }))) {
    await writeAll(file, Uint8Array.of(lineFeed), size);
  } else {
    await file.truncate(start);
  }
  await file.sync();
}

/** Where the whole lines of a file's first bytes end: a last one that lacks only its line feed is one of them. */
export async function endOfCompleteLines(file: OpenFile, size: number): Promise<number> {
  const start = await startOfLastLine(file, size);
  return isJson(await readBytes(file, { start, end: size })) ? size : start;
}

/** Where the line begins that has no line feed; the file's size where there is none. */
async function startOfLastLine(file: OpenFile, size: number): Promise<number> {
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - blockSize);
    const bytes = await readBytes(file, { start, end });
    const last = bytes.lastIndexOf(lineFeed);
    if (last >= 0) return start + last + 1;
    end = start;
  }
  return 0;
}

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString("utf8"));
    return true;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return false;
  }
}
