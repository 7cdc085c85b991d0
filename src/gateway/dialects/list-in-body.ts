/** The position of a list in the JSON text of an object, in bytes. */
interface ListPlace {
  /** Offset after the opening bracket. */
  readonly start: number;
  /** Offsets after the last items, at most `keptEnds`. */
  readonly itemEnds: readonly number[];
  /** Offset of the closing bracket. */
  readonly end: number;
}

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

const [quote, backslash, comma, colonSign] = [0x22, 0x5c, 0x2c, 0x3a];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Returns the offset after the value at `from`, or `from` if no value is there. */
function skipValue(json: Uint8Array, from: number): number {
  const first = json[from];
  if (first === quote) return skipString(json, from);
  if (first !== openBrace && first !== openBracket) return skipScalar(json, from);
  let depth = 0;
  for (let at = from; at < json.length; at++) {
    const byte = json[at];
    if (byte === quote) {
      at = skipString(json, at) - 1;
    } else if (byte === openBrace || byte === openBracket) {
      depth += 1;
    } else if (byte === closeBrace || byte === closeBracket) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return json.length;
}

function skipString(json: Uint8Array, from: number): number {
  for (let at = from + 1; at < json.length; at++) {
    const byte = json[at];
    if (byte === quote) return at + 1;
    if (byte === backslash) at += 1;
  }
  return json.length;
}

function skipScalar(json: Uint8Array, from: number): number {
  let at = from;
  for (; at < json.length; at++) {
    const byte = json[at]!;
    if (byte === comma || byte === closeBracket || byte === closeBrace || isSpace(byte)) break;
  }
  return at;
}

function skipSpace(json: Uint8Array, from: number): number {
  let at = from;
  while (at < json.length && isSpace(json[at]!)) at += 1;
  return at;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
