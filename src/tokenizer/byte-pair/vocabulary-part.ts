import { skipSpace } from "../../json/json-members.ts";
import { TokenTextReader } from "./token-text-reader.ts";
import { maxId, TokenTexts } from "./token-texts.ts";

const comma = 0x2c;
const zero = 0x30;
const colon = 0x3a;
const openObject = 0x7b;
const closeObject = 0x7d;

/** The vocabulary of a document: ids by token text. */
export interface VocabularyPart {
  /** The position after the vocabulary. */
  readonly end: number;
  /** The largest id, or -1 for an empty vocabulary. */
  readonly largestId: number;
  /**
   * The texts of all ids. Absent if the vocabulary cannot be indexed: an id or a text occurs twice,
   * or an id is above `maxId`.
   */
  readonly tokenTexts?: TokenTexts;
}

/**
 * Reads the JSON object at a position of the document.
 *
 * @param options - `isIndexed`: false skips the index of token texts. Default true.
 * @returns `undefined` if there is no object, or a member is not an integer of at least 0.
 */
export function readVocabularyPart(
  bytes: Buffer,
  start: number,
  { isIndexed = true }: { readonly isIndexed?: boolean } = {},
): VocabularyPart | undefined {
  if (bytes[start] !== openObject) return undefined;
  const reader = new TokenTextReader(bytes, start);
  // The shortest member, `"":0,`, has five bytes.
  const maxCount = Math.ceil((bytes.length - start) / 5);
  const starts = new Int32Array(maxCount + 1);
  const ids = new Int32Array(maxCount);
  const hashes = new Int32Array(maxCount);
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
  // Slices free the unused capacity.
  const tokenTexts =
    isIndexed && largestId <= maxId
      ? TokenTexts.of({
          bytes: Buffer.from(reader.copied.subarray(0, reader.end)),
          starts: starts.slice(0, count + 1),
          ids: ids.slice(0, count),
          hashes: hashes.slice(0, count),
        })
      : undefined;
  return { end: at + 1, largestId, ...(tokenTexts && { tokenTexts }) };
}
