import { type Files, type OpenFile, readBlocks, readBytes, withFile } from "./files.ts";

/** The position of a line in its file, in bytes, without its line feed. */
export interface LineRange {
  readonly start: number;
  readonly end: number;
}

/** A line of a scan. Its bytes are valid only during the callback. */
export interface ScannedLine extends LineRange {
  readonly bytes: Buffer;
  /** The line's number, from 1; empty lines count. */
  readonly line: number;
}

const lineFeed = 0x0a;

/**
 * Calls back with the bytes of each line. A last line without a line feed counts; empty lines are skipped.
 *
 * @returns the file's size in bytes; 0 if it does not exist.
 */
export async function scanLines(
  files: Files,
  path: string,
  onLine: (line: ScannedLine) => void,
): Promise<number> {
  const { size } = await scanUntil(files, path, (line) => {
    onLine(line);
    return false;
  });
  return size;
}

/** True if a line of the file matches. Reads up to the first match; false if the file does not exist. */
export async function hasLine(
  files: Files,
  path: string,
  holds: (line: ScannedLine) => boolean,
): Promise<boolean> {
  return (await scanUntil(files, path, holds)).isFound;
}

/** Calls back with each line until the callback returns true. */
async function scanUntil(
  files: Files,
  path: string,
  isIt: (line: ScannedLine) => boolean,
): Promise<{ readonly isFound: boolean; readonly size: number }> {
  return (
    (await withFile(files, path, async (file) => {
      let held: Buffer[] = [];
      let start = 0;
      let position = 0;
      let line = 0;
      const endLine = (end: number): boolean => {
        const bytes = held.length === 1 ? held[0]! : Buffer.concat(held);
        held = [];
        line += 1;
        const isFound = bytes.length > 0 && isIt({ bytes, line, start, end });
        start = end + 1;
        return isFound;
      };
      for await (const bytes of readBlocks(file)) {
        let from = 0;
        for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, from)) {
          held.push(bytes.subarray(from, at));
          if (endLine(position + at)) return { isFound: true, size: position + at };
          from = at + 1;
        }
        // The block is reused, so the rest of it is copied.
        if (from < bytes.length) held.push(Buffer.from(bytes.subarray(from)));
        position += bytes.length;
      }
      const isFound = position > start && endLine(position);
      return { isFound, size: position };
    })) ?? { isFound: false, size: 0 }
  );
}

/**
 * Reads the lines of these ranges in order, each with a line feed, in blocks of up to about a megabyte. Adjacent lines
 * are read together.
 */
export async function* readLineRanges(
  file: OpenFile,
  ranges: readonly LineRange[],
): AsyncGenerator<Uint8Array> {
  let pending: Uint8Array[] = [];
  let pendingLength = 0;
  for (const { start, end } of joinNeighbours(ranges)) {
    for (let from = start; from < end; from += blockLimit) {
      const until = Math.min(from + blockLimit, end);
      const bytes = await readBytes(file, { start: from, end: until });
      if (bytes.length < until - from) throw endedEarly();
      pending.push(bytes);
      pendingLength += bytes.length;
      if (pendingLength < blockLimit) continue;
      yield Buffer.concat(pending);
      pending = [];
      pendingLength = 0;
    }
    pending.push(Buffer.of(lineFeed));
    pendingLength++;
  }
  if (pendingLength > 0) yield Buffer.concat(pending);
}

/**
 * Returns the error for a file that became shorter while it was read. Writing the remaining lines would lose the
 * others.
 */
export function endedEarly(): Error {
  const error = new Error(
    "the file is shorter than it was a moment ago, as if another program had cut it",
  );
  return Object.assign(error, { code: "EIO" });
}

const blockLimit = 1024 * 1024;

/** Joins ranges that are adjacent, with the line feeds between them. */
function* joinNeighbours(ranges: readonly LineRange[]): Generator<LineRange> {
  let open: LineRange | undefined;
  for (const range of ranges) {
    if (open !== undefined && range.start === open.end + 1) {
      open = { start: open.start, end: range.end };
      continue;
    }
    if (open !== undefined) yield open;
    open = range;
  }
  if (open !== undefined) yield open;
}
