import { type OpenFile, readBytes } from "./files.ts";

/**
 * What was read of a file that grows: which one it was, how far it was read, and the last bytes before that. A
 * file system gives the number of a removed file to another, and files are cut: its identity and its size do not
 * tell that what was read is still there.
 */
export interface FileMark {
  readonly identity: string;
  /** In bytes. */
  readonly end: number;
  readonly lastBytes: Buffer;
}

/** Rows and lines of recordings differ within so many bytes of their ends: hashes and ids stand there. */
const markLength = 512;

/** Marks a file where it ends now. */
export async function markEnd(file: OpenFile): Promise<FileMark> {
  const { identity, size: end } = await file.facts();
  const start = Math.max(0, end - markLength);
  return { identity, end, lastBytes: await readBytes(file, { start, end }) };
}

/** Whether what lay before the mark still lies there. */
export async function holdsMark(
  file: OpenFile,
  { identity, end, lastBytes }: FileMark,
): Promise<boolean> {
  const facts = await file.facts();
  if (facts.identity !== identity || facts.size < end) return false;
  const bytes = await readBytes(file, { start: end - lastBytes.length, end });
  return bytes.equals(lastBytes);
}

/** The last bytes of a mark whose file was read on: those before and what follows them. */
export function moveLastBytes(before: Buffer, bytes: Buffer): Buffer {
  return Buffer.concat([before, bytes.subarray(-markLength)]).subarray(-markLength);
}
