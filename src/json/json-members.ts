/** The range of a value in a JSON text, in bytes; `end` is exclusive. */
export type Extent = readonly [start: number, end: number];

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const closeList = 0x5d;

/** The ranges of an object's members, and the index after the object. */
export interface Members {
  readonly members: ReadonlyMap<string, Extent>;
  readonly end: number;
}

/**
 * Finds the ranges of the members of the JSON object at an index without parsing them: large members cost one pass
 * over their bytes and no memory. A member that `enter` names is scanned by that function, which returns the
 * member's end and receives the members before it.
 *
 * @param maxDepth - The deepest nesting of lists and objects within a member.
 * @returns `undefined` if there is no object at that index, it is not closed, or it nests too deeply. The members'
 * content is not validated.
 */
export function findMembers(
  bytes: Buffer,
  start = 0,
  enter: Readonly<
    Record<string, (start: number, before: ReadonlyMap<string, Extent>) => number | undefined>
  > = {},
  maxDepth = Number.POSITIVE_INFINITY,
): Members | undefined {
  const members = new Map<string, Extent>();
  let at = skipSpace(bytes, start);
  if (bytes[at] !== 0x7b) return undefined;
  at = skipSpace(bytes, at + 1);
  while (bytes[at] === quote) {
    const keyEnd = skipString(bytes, at);
    const key = bytes.toString("utf8", at + 1, keyEnd - 1);
    const colon = skipSpace(bytes, keyEnd);
    if (bytes[colon] !== 0x3a) return undefined;
    const valueStart = skipSpace(bytes, colon + 1);
    const own = Object.hasOwn(enter, key) ? enter[key] : undefined;
    const valueEnd = own?.(valueStart, members) ?? skipValue(bytes, valueStart, maxDepth);
    if (valueEnd <= valueStart || valueEnd > bytes.length) return undefined;
    members.set(key, [valueStart, valueEnd]);
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] !== comma) break;
    at = skipSpace(bytes, at + 1);
    if (bytes[at] !== quote) return undefined;
  }
  return bytes[at] === 0x7d ? { members, end: at + 1 } : undefined;
}

/**
 * Finds the ranges of the items of the JSON list at an index without parsing them.
 *
 * @param maxDepth - The deepest nesting of lists and objects within an item.
 * @returns `undefined` if there is no list at that index, it is not closed, or it nests too deeply. The items'
 * content is not validated.
 */
export function findItems(
  bytes: Buffer,
  start = 0,
  maxDepth = Number.POSITIVE_INFINITY,
): readonly Extent[] | undefined {
  const items: Extent[] = [];
  let at = skipSpace(bytes, start);
  if (bytes[at] !== 0x5b) return undefined;
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === closeList) return items;
  for (;;) {
    const end = skipValue(bytes, at, maxDepth);
    if (end <= at || end > bytes.length) return undefined;
    items.push([at, end]);
    at = skipSpace(bytes, end);
    if (bytes[at] === closeList) return items;
    if (bytes[at] !== comma) return undefined;
    at = skipSpace(bytes, at + 1);
  }
}

/** The largest integer outside of strings in a range of JSON; -1 without integers. */
export function largestInteger(bytes: Buffer, [start, end]: Extent): number {
  let largest = -1;
  for (let at = start; at < end;) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      at = skipString(bytes, at);
    } else if (byte >= 0x30 && byte <= 0x39) {
      let value = 0;
      for (; isDigit(bytes[at]); at++) value = value * 10 + (bytes[at] as number) - 0x30;
      if (value > largest) largest = value;
    } else {
      at += 1;
    }
  }
  return largest;
}

/** The number of lists directly in the list at a range. */
export function countLists(bytes: Buffer, [start, end]: Extent): number {
  let count = 0;
  let depth = 0;
  for (let at = start; at < end;) {
    const byte = bytes[at];
    if (byte === quote) {
      at = skipString(bytes, at);
      continue;
    }
    if (byte === 0x5b) {
      if (depth === 1) count += 1;
      depth += 1;
    } else if (byte === 0x5d) {
      depth -= 1;
    }
    at += 1;
  }
  return count;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** The index of the first byte at or after `from` that is not white space. */
export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isSpace(bytes[at])) at += 1;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The index after the string that starts at `from`. */
export function skipString(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at + 1;
}

/**
 * The index after the value that starts at `from`; beyond the end of the bytes if the value is not closed or too
 * deep.
 */
export function skipValue(
  bytes: Uint8Array,
  from: number,
  maxDepth = Number.POSITIVE_INFINITY,
): number {
  let depth = 0;
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === quote) {
      at = skipString(bytes, at);
      if (depth === 0) return at;
      continue;
    }
    if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      if (depth > maxDepth) break;
    } else if (byte === 0x7d || byte === 0x5d) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (byte === comma || isSpace(byte))) {
      return at;
    }
    at += 1;
  }
  return bytes.length + 1;
}
