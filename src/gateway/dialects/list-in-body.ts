import { skipSpace, skipString, skipValue } from "../../json/json-members.ts";

/** The position of a list in the JSON text of an object, in bytes. */
interface ListPlace {
  /** Offset after the opening bracket. */
  readonly start: number;
  /** Offsets after the last items, at most `keptEnds`. */
  readonly itemEnds: readonly number[];
  /** Offset of the closing bracket. */
  readonly end: number;
}

const [quote, comma, colonSign] = [0x22, 0x2c, 0x3a];
const [openBrace, openBracket, closeBracket] = [0x7b, 0x5b, 0x5d];

/** Maximum number of item ends to keep, because a body may have millions of items. */
export const keptEnds = 6;

/**
 * Finds a list among an object's fields without parsing the values before it.
 *
 * @param json - The result is meaningless if this is not valid JSON.
 * @returns the first list with that name, or `undefined` if there is none or its name is written
 *   with escapes.
 */
export function findList(json: Uint8Array, name: string): ListPlace | undefined {
  const wanted = Buffer.from(JSON.stringify(name));
  let at = skipSpace(json, 0);
  if (json[at] !== openBrace) return undefined;
  do {
    const key = skipSpace(json, at + 1);
    if (json[key] !== quote) return undefined;
    const keyEnd = skipString(json, key);
    const colon = skipSpace(json, keyEnd);
    if (json[colon] !== colonSign) return undefined;
    const value = skipSpace(json, colon + 1);
    if (json[value] === openBracket && wanted.equals(json.subarray(key, keyEnd))) {
      const rest = readItems(json, value + 1);
      return rest && { start: value + 1, ...rest };
    }
    at = skipSpace(json, skipValue(json, value));
  } while (json[at] === comma);
  return undefined;
}

/**
 * Finds the items of a list after a given item, up to the list's end.
 *
 * @param from - Offset after an item.
 * @returns `undefined` if neither a comma nor the list's end follows.
 */
export function followItems(
  json: Uint8Array,
  from: number,
): Pick<ListPlace, "itemEnds" | "end"> | undefined {
  const at = skipSpace(json, from);
  if (json[at] === closeBracket) return { itemEnds: [], end: at };
  if (json[at] !== comma) return undefined;
  return readItems(json, at + 1);
}

function readItems(
  json: Uint8Array,
  from: number,
): Pick<ListPlace, "itemEnds" | "end"> | undefined {
  const itemEnds: number[] = [];
  let at = skipSpace(json, from);
  if (json[at] === closeBracket) return { itemEnds, end: at };
  for (;;) {
    const end = skipValue(json, at);
    if (end === at) return undefined;
    itemEnds.push(end);
    if (itemEnds.length > keptEnds) itemEnds.shift();
    at = skipSpace(json, end);
    if (json[at] === closeBracket) return { itemEnds, end: at };
    if (json[at] !== comma) return undefined;
    at = skipSpace(json, at + 1);
  }
}
