import { type OpenFile, readBytes } from "./files.ts";

/**
 * A position up to which a growing file was read: the file's identity, the position, and the bytes before it. Identity
 * and size are not enough, because a file can be cut, and a new file can get the number of a removed one.
 */
export interface FileMark {
  readonly identity: string;
  /** The position in bytes. */
  readonly end: number;
  readonly lastBytes: Buffer;
}

/**
 * The number of bytes that are compared. Lines of a run differ within their last 512 bytes, which contain hashes and
 * ids.
 */
const markLength = 512;

/** Marks the current end of a file. */
export async function markEnd(file: OpenFile): Promise<FileMark> {
  const { identity, size: end } = await file.facts();
  const start = Math.max(0, end - markLength);
  return { identity, end, lastBytes: await readBytes(file, { start, end }) };
}

/** True if the file still holds the bytes before the mark. */
export async function holdsMark(
  file: OpenFile,
  { identity, end, lastBytes }: FileMark,
): Promise<boolean> {
  const facts = await file.facts();
  if (facts.identity !== identity || facts.size < end) return false;
  const bytes = await readBytes(file, { start: end - lastBytes.length, end });
  return bytes.equals(lastBytes);
}

/** Returns the last bytes before a mark that moves forward over `bytes`. */
export function moveLastBytes(before: Buffer, bytes: Buffer): Buffer {
  return Buffer.concat([before, bytes.subarray(-markLength)]).subarray(-markLength);
}
