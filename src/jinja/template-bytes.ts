import { runtimeError, type TemplateObject, type TemplateValue } from "./template-value.ts";
import { builtin, type BuiltinFunction } from "./template-function.ts";
import { strOf } from "./template-text.ts";

const utf8Names: ReadonlySet<string> = new Set(["utf-8", "utf8", "u8"]);

/** A Python `bytes`: what `str.encode()` gives. */
export class Bytes implements TemplateObject {
  readonly pythonType = "bytes";
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  length(): number {
    return this.#bytes.length;
  }

  itemAt(index: number): bigint | undefined {
    const byte = this.#bytes[index];
    return byte === undefined ? undefined : BigInt(byte);
  }

  *iterate(): IterableIterator<bigint> {
    for (const byte of this.#bytes) yield BigInt(byte);
  }

  attribute(name: string): BuiltinFunction | undefined {
    if (name !== "decode") return undefined;
    return builtin("decode encoding?", (encoding) => {
      requireUtf8(encoding);
      return Buffer.from(this.#bytes).toString("utf8");
    });
  }

  repr(): string {
    const characters = Array.from(this.#bytes, (byte) => spell(byte)).join("");
    if (!characters.includes("'")) return `b'${characters}'`;
    return characters.includes('"')
      ? `b'${characters.replaceAll("'", "\\'")}'`
      : `b"${characters}"`;
  }
}

const escapes: ReadonlyMap<number, string> = new Map([
  [0x09, "\\t"],
  [0x0a, "\\n"],
  [0x0d, "\\r"],
  [0x5c, "\\\\"],
]);

function spell(byte: number): string {
  const escape = escapes.get(byte);
  if (escape !== undefined) return escape;
  if (byte >= 0x20 && byte < 0x7f) return String.fromCharCode(byte);
  return `\\x${byte.toString(16).padStart(2, "0")}`;
}

/** Python's `text.encode(encoding)`, for UTF-8. @throws TemplateError for other encodings. */
export function encodeText(text: string, encoding: TemplateValue | undefined): Bytes {
  requireUtf8(encoding);
  return new Bytes(Buffer.from(text, "utf8"));
}

function requireUtf8(encoding: TemplateValue | undefined): void {
  if (encoding === undefined || utf8Names.has(strOf(encoding).toLowerCase())) return;
  throw runtimeError(`Cannot use the encoding ${strOf(encoding)} in a chat template: only utf-8`);
}
