import { type OpenFile, readBytes, writeAll } from "./files.ts";

const lineFeed = 0x0a;
const blockSize = 64 * 1024;

/** Repairs the end of a file of JSON lines: adds a missing last line feed, or removes a torn line. */
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

/**
 * Returns the end of the complete lines within the first `size` bytes. A last line that lacks only its line feed counts
 * as complete.
 */
export async function endOfCompleteLines(file: OpenFile, size: number): Promise<number> {
  const start = await startOfLastLine(file, size);
  return isJson(await readBytes(file, { start, end: size })) ? size : start;
}

/** Returns the start of the line without a line feed; the file's size if every line has one. */
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
