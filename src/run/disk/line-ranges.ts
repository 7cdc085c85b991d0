import { type Files, type OpenFile, readBlocks, readBytes, withFile } from "./files.ts";

/** Where a line stands in its file, in bytes, without its line feed. */
export interface LineRange {
  readonly start: number;
  readonly end: number;
}

/** A line that a scan came by. Its bytes are valid during the call only. */
export interface ScannedLine extends LineRange {
  readonly bytes: Buffer;
  /** 1-based; empty lines count. */
  readonly line: number;
}

const lineFeed = 0x0a;

/**
 * Calls back with each line of a file, without decoding it; a last line without a line feed is one
 * too, and empty lines are none.
 *
 * @returns the file's size in bytes; 0 where there is no such file.
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

/** Whether a file has a line for which this holds; it is read up to the first one. No file has none. */
export async function hasLine(
  files: Files,
  path: string,
  holds: (line: ScannedLine) => boolean,
): Promise<boolean> {
  return (await scanUntil(files, path, holds)).isFound;
}

/** Calls back with one line after the other until one is what is looked for. */
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
        // The block is used again: what is left of it is copied.
        if (from < bytes.length) held.push(Buffer.from(bytes.subarray(from)));
        position += bytes.length;
      }
      const isFound = position > start && endLine(position);
      return { isFound, size: position };
    })) ?? { isFound: false, size: 0 }
  );
}

/**
 * The lines of the ranges, in the order of the ranges, each with a line feed, in blocks of up to about
 * a megabyte. Neighbours are read together.
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

/** A file that was longer when its lines were found: what is left of it must not take its place. */
function endedEarly(): Error {
  const error = new Error(
    "the file is shorter than it was a moment ago, as if cut by somebody else",
  );
  return Object.assign(error, { code: "EIO" });
}

const blockLimit = 1024 * 1024;

/** Ranges that lie one after the other as one, the line feeds between them included. */
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
