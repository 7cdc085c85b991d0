import { parseJsonText } from "../../json/parse-json.ts";

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;

/** **Source:** the 32-bit FNV-1a hash of Fowler, Noll and Vo. */
const hashStart = 0x811c9dc5 | 0;
const hashPrime = 0x01000193;

/** The hash of a spelling's bytes, in UTF-8. */
export function hashSpelling(bytes: Uint8Array, from: number, to: number): number {
  return hashOn(hashStart, bytes, from, to);
}

function hashOn(begun: number, bytes: Uint8Array, from: number, to: number): number {
  let hash = begun;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (bytes[at] as number), hashPrime);
  return hash;
}

/**
 * Copies the spellings that stand as strings in a JSON document to where they are one after the other, in UTF-8,
 * and hashes them on the way.
 */
export class SpellingReader {
  readonly #bytes: Buffer;
  /** What was read. Escapes only shrink: there is room for whatever the document holds. */
  readonly copied: Buffer;
  /** Where the last spelling's bytes end in `copied`, and where the next one's are put. */
  end = 0;
  /** Of the last spelling. */
  hash = 0;
  /** Where the document is read. */
  at: number;

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes;
    this.copied = Buffer.allocUnsafe(Math.max(0, bytes.length - start));
    this.at = start;
  }

  /** Reads the string that is next; `false` where there is none that could be a spelling. */
  read(): boolean {
    return this.#opens() && this.#readUpTo(quote);
  }

  /** Reads the first of two spellings that are one string, with a space between them. */
  readLeft(): boolean {
    return this.#opens() && this.#readUpTo(space);
  }

  /** Reads what follows in that string, in which there is no further space. */
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
      // JSON has no characters below the space in its strings.
      if (byte === undefined || byte === quote || byte < space) return false;
      if (byte === backslash) {
        const escapedByte = bytes[at + 1] as number;
        if (escapedByte === quote || escapedByte === backslash) {
          // Nearly all escapes: read so, V8 compiles what reads the file in half the time.
          copied[end++] = escapedByte;
          hash = Math.imul(hash ^ escapedByte, hashPrime);
          at += 1;
          continue;
        }
        const escaped = readEscape(bytes, at);
        if (escaped === undefined || (stop === space && escaped.text === " ")) return false;
        const length = copied.write(escaped.text, end);
        hash = hashOn(hash, copied, end, end + length);
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

/** The character that is escaped there; `undefined` where that is no escape, or half of a character. */
function readEscape(
  bytes: Buffer,
  start: number,
): { readonly text: string; readonly end: number } | undefined {
  const [escape] = /^\\(?:u[Dd][89ABab]..\\u....|u....|[^u])/.exec(
    bytes.toString("latin1", start, start + 12),
  ) ?? [""];
  const text = parseJsonText(`"${escape}"`);
  // Half of a pair is no character.
  if (typeof text !== "string" || text === "" || /\p{Surrogate}/u.test(text)) return undefined;
  return { text, end: start + escape.length };
}
