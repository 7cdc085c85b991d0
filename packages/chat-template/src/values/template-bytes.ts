import type { TemplateObject, TemplateValue } from "./template-value.ts";
import { decodeBytes, encodeAs, findEncoding } from "./template-encodings.ts";
import { builtin, type BuiltinFunction } from "../evaluate/template-function.ts";
import { strOf } from "./template-text.ts";

/** A Python `bytes`, the result of `str.encode()`. */
class Bytes implements TemplateObject {
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
    return builtin("decode encoding? errors?", (encoding, errors) =>
      decodeBytes(this.#bytes, findEncoding(nameOf(encoding, "utf-8")), nameOf(errors, "strict")),
    );
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

/**
 * Python's `text.encode(encoding, errors)`.
 *
 * @throws TemplateError as `findEncoding()` and `encodeAs()` do.
 */
export function encodeText(
  text: string,
  encoding: TemplateValue | undefined,
  errors: TemplateValue | undefined,
): Bytes {
  const codec = findEncoding(nameOf(encoding, "utf-8"));
  return new Bytes(encodeAs(text, codec, nameOf(errors, "strict")));
}

function nameOf(name: TemplateValue | undefined, fallback: string): string {
  return name === undefined ? fallback : strOf(name);
}
