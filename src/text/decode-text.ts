import { isUtf8 } from "node:buffer";
import { readFile } from "node:fs/promises";

/** The character that some editors put before a text to say that it is UTF-8. */
export const byteOrderMark = "\uFEFF";

/** How a text from outside is decoded. */
interface DecodeOptions {
  /**
   * `drop` takes a byte order mark at the beginning away, for formats in which it is no part of the value.
   * Default: it stays.
   */
  readonly mark?: "drop" | "keep";
}

/**
 * Decodes UTF-8 from outside, and changes nothing: `Buffer.toString()` would put U+FFFD in the place of
 * bytes that are not UTF-8.
 *
 * @throws TypeError that names the line where the bytes are not UTF-8.
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
 * @throws TypeError as `decodeText()` does, and what reading throws.
 */
export async function readTextFile(
  file: string,
  { signal, ...options }: DecodeOptions & { readonly signal?: AbortSignal | undefined } = {},
): Promise<string> {
  return decodeText(await readFile(file, signal && { signal }), options);
}

/** The bytes that compressed data begins with. */
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
