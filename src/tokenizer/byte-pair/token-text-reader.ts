import { parseJsonText } from "../../json/parse-json.ts";

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;

/** **Source:** the 32-bit FNV-1a hash of Fowler, Noll and Vo. */
const hashStart = 0x811c9dc5 | 0;
const hashPrime = 0x01000193;

/** Returns the hash of a token text's bytes in UTF-8. */
export function hashTokenText(bytes: Uint8Array, from: number, to: number): number {
  return continueHash(hashStart, bytes, from, to);
}

function continueHash(start: number, bytes: Uint8Array, from: number, to: number): number {
  let hash = start;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (bytes[at] as number), hashPrime);
  return hash;
}

/**
 * Reads token texts, which are strings in a JSON document. Copies them in UTF-8, one after the
 * other, and hashes them.
 */
export class TokenTextReader {
  readonly #bytes: Buffer;
  /** The copied texts. Large enough for the complete document, because escapes only shrink. */
  readonly copied: Buffer;
  /** The end of the last text in `copied`, where the next one starts. */
  end = 0;
  /** The hash of the last text. */
  hash = 0;
  /** The current position in the document. */
  at: number;

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes;
    this.copied = Buffer.allocUnsafe(Math.max(0, bytes.length - start));
    this.at = start;
  }

  /** Reads the next string. Returns `false` if there is no valid one. */
  read(): boolean {
    return this.#opens() && this.#readUpTo(quote);
  }

  /** Reads the first of two token texts in one string, with a space between them. */
  readLeft(): boolean {
    return this.#opens() && this.#readUpTo(space);
  }

  /** Reads the second text of that string, which must not contain another space. */
  readRight(): boolean {
    const from = this.end;
    return this.#readUpTo(quote) && !this.copied.subarray(from, this.end).includes(space);
  }

  #opens(): boolean {
    if (this.#bytes[this.at] !== quote) return false;
    this.at += 1;
    return true;
  }

  #readUpTo(stop: number): boolean {
    const bytes = this.#bytes;
    const copied = this.copied;
    let { at, end } = this;
    let hash = hashStart;
    for (; ; at++) {
      const byte = bytes[at];
      if (byte === stop) break;
      // JSON strings contain no characters below the space.
      if (byte === undefined || byte === quote || byte < space) return false;
      if (byte === backslash) {
        const escapedByte = bytes[at + 1] as number;
        if (escapedByte === quote || escapedByte === backslash) {
          // Nearly all escapes. With this shortcut, V8 compiles the loop in half the time.
          copied[end++] = escapedByte;
          hash = Math.imul(hash ^ escapedByte, hashPrime);
          at += 1;
          continue;
        }
        const escaped = readEscape(bytes, at);
        if (escaped === undefined || (stop === space && escaped.text === " ")) return false;
        const length = copied.write(escaped.text, end);
        hash = continueHash(hash, copied, end, end + length);
        end += length;
        at = escaped.end - 1;
        continue;
      }
      copied[end++] = byte;
      hash = Math.imul(hash ^ byte, hashPrime);
    }
    this.at = at + 1;
    this.end = end;
    this.hash = hash;
    return true;
  }
}

/** Returns the escaped character, or `undefined` for an invalid escape or half of a character. */
function readEscape(
  bytes: Buffer,
  start: number,
): { readonly text: string; readonly end: number } | undefined {
  const [escape] = /^\\(?:u[Dd][89ABab]..\\u....|u....|[^u])/.exec(
    bytes.toString("latin1", start, start + 12),
  ) ?? [""];
  const text = parseJsonText(`"${escape}"`);
  // Half of a surrogate pair is not a character.
  if (typeof text !== "string" || text === "" || /\p{Surrogate}/u.test(text)) return undefined;
  return { text, end: start + escape.length };
}
