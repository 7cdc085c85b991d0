import { isUtf8 } from "node:buffer";
import { readFile } from "node:fs/promises";

/** The byte order mark, which some editors put before UTF-8 text. */
export const byteOrderMark = "\uFEFF";

/** Options of `decodeText()`. */
interface DecodeOptions {
  /** `drop` removes a leading byte order mark, for formats in which it is not part of the value. Default: keep it. */
  readonly mark?: "drop" | "keep";
}

/**
 * Decodes UTF-8 from outside without changes: `Buffer.toString()` would replace invalid bytes by U+FFFD.
 *
 * @throws TypeError that names the line with invalid bytes.
 */
export function decodeText(bytes: Uint8Array, { mark = "keep" }: DecodeOptions = {}): string {
  if (!isUtf8(bytes)) throw new TypeError(describeWrongBytes(bytes));
  const { buffer, byteOffset, byteLength } = bytes;
  const text = Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
  return mark === "drop" && text.startsWith(byteOrderMark) ? text.slice(1) : text;
}

/**
 * Reads a text file that others wrote.
 *
 * @throws TypeError like `decodeText()`, and file system errors.
 */
export async function readTextFile(file: string, options: DecodeOptions = {}): Promise<string> {
  return decodeText(await readFile(file), options);
}

/** The first bytes of compressed data. */
const compressions = [
  { name: "gzip", magic: [0x1f, 0x8b] },
  { name: "zstd", magic: [0x28, 0xb5, 0x2f, 0xfd] },
] as const;

function describeWrongBytes(bytes: Uint8Array): string {
  const [first, second] = bytes;
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  if (isUtf16) return "it is UTF-16, expected UTF-8 (save the text as UTF-8)";
  const coding = compressions.find(({ magic }) => magic.every((byte, at) => bytes[at] === byte));
  if (coding !== undefined) {
    return `it is compressed (${coding.name}), expected UTF-8, or over HTTP a Content-Encoding that says so`;
  }
  let line = 1;
  for (let start = 0; start < bytes.length; line++) {
    const found = bytes.indexOf(0x0a, start);
    const end = found < 0 ? bytes.length : found;
    if (!isUtf8(bytes.subarray(start, end))) break;
    start = end + 1;
  }
  return `line ${line} is not UTF-8, expected UTF-8 (save the text as UTF-8)`;
}
