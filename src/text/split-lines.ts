import { isUtf8 } from "node:buffer";
import { UsageError } from "../errors.ts";

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * Yields the lines of a stream of UTF-8 bytes without their line feeds. Only a line feed (with an optional carriage
 * return before it) ends a line: JSON text may contain other separators, such as U+2028, at which `node:readline`
 * would split. A non-empty rest after the last line feed is a line too; if a crash cut it within a character, it
 * ends with U+FFFD.
 *
 * @param name - Names the stream in the error.
 * @throws UsageError that names the first complete line that is not UTF-8.
 */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array | string>,
  name = "the input",
): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let count = 0;
  for await (const chunk of chunks) {
    const bytes = toBuffer(chunk);
    let start = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, start)) {
      parts.push(bytes.subarray(start, end));
      count += 1;
      const line = join(parts);
      if (!isUtf8(line)) {
        throw new UsageError(`Cannot read ${name}: line ${count} is not UTF-8, expected UTF-8`);
      }
      yield withoutReturn(line);
      parts = [];
      start = end + 1;
    }
    if (start < bytes.length) parts.push(bytes.subarray(start));
  }
  if (parts.length > 0) yield withoutReturn(join(parts));
}

function toBuffer(chunk: Uint8Array | string): Buffer {
  if (typeof chunk === "string") return Buffer.from(chunk);
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

function join(parts: readonly Buffer[]): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}

function withoutReturn(line: Buffer): string {
  const end = line.at(-1) === carriageReturn ? line.length - 1 : line.length;
  return line.toString("utf8", 0, end);
}
