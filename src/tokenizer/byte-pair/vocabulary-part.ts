import { skipSpace } from "../../json/json-members.ts";
import { SpellingReader } from "./spelling-reader.ts";
import { maxId, Spellings } from "./spellings.ts";

const comma = 0x2c;
const zero = 0x30;
const colon = 0x3a;
const openObject = 0x7b;
const closeObject = 0x7d;

/** A vocabulary of ids by spelling. */
export interface VocabularyPart {
  /** The place behind it. */
  readonly end: number;
  /** The largest id; -1 where there is none. */
  readonly largestId: number;
  /** Absent where they cannot be looked up both ways: an id or a spelling occurs twice, or an id is above `maxId`. */
  readonly spellings?: Spellings;
}

/**
 * Goes through the JSON object that stands at a place of the document.
 *
 * @param options - `isLookedUp`: whether spellings are kept. Default true.
 * @returns `undefined` where there is none, or a member is anything but a whole number of at least 0.
 */
export function readVocabularyPart(
  bytes: Buffer,
  start: number,
  { isLookedUp = true }: { readonly isLookedUp?: boolean } = {},
): VocabularyPart | undefined {
  if (bytes[start] !== openObject) return undefined;
  const reader = new SpellingReader(bytes, start);
  // The shortest member, `"":0,`, has five bytes.
  const mostCount = Math.ceil((bytes.length - start) / 5);
  const starts = new Int32Array(mostCount + 1);
  const ids = new Int32Array(mostCount);
  const hashes = new Int32Array(mostCount);
  let count = 0;
  let largestId = -1;
  let at = skipSpace(bytes, start + 1);
  while (bytes[at] !== closeObject || count > 0) {
    reader.at = at;
    if (!reader.read()) return undefined;
    at = skipSpace(bytes, reader.at);
    if (bytes[at] !== colon) return undefined;
    at = skipSpace(bytes, at + 1);
    const digits = at;
    let id = 0;
    for (; ; at++) {
      const digit = (bytes[at] as number) - 0x30;
      if (!(digit >= 0 && digit <= 9)) break;
      id = id * 10 + digit;
    }
    const hasZeros = bytes[digits] === zero && at > digits + 1;
    if (at === digits || hasZeros) return undefined;
    if (id > largestId) largestId = id;
    hashes[count] = reader.hash;
    ids[count++] = id;
    starts[count] = reader.end;
    at = skipSpace(bytes, at);
    if (bytes[at] === closeObject) break;
    if (bytes[at] !== comma) return undefined;
    at = skipSpace(bytes, at + 1);
  }
  // What is kept has no room to spare.
  const spellings =
    isLookedUp && largestId <= maxId
      ? Spellings.of({
          bytes: Buffer.from(reader.copied.subarray(0, reader.end)),
          starts: starts.slice(0, count + 1),
          ids: ids.slice(0, count),
          hashes: hashes.slice(0, count),
        })
      : undefined;
  return { end: at + 1, largestId, ...(spellings && { spellings }) };
}
