/** The most bytes of an id, including its comma. */
export const mostBytesPerId = "2147483647,".length;

/** The number of bytes after the last id that `writeIds()` may overwrite. */
export const idSlack = 4;

const comma = ",".charCodeAt(0);
const zero = "0".charCodeAt(0);
const million = 1_000_000;
const milliard = 1_000_000_000;

/**
 * The first digits of a number, for 0 to 999: the digits with the first one in the lowest byte, and
 * their count.
 */
const leading = new Uint32Array(1_000);
const leadingLength = new Uint8Array(1_000);
/** The three digits within a number, for 0 to 999, with a comma in the highest byte. */
const following = new Uint32Array(1_000);

for (let number = 0; number < 1_000; number++) {
  leading[number] = packBytes(`${number}`);
  leadingLength[number] = `${number}`.length;
  following[number] = packBytes(`${`${number}`.padStart(3, "0")},`);
}

function packBytes(text: string): number {
  return [...text].reduce(
    (packed, each, place) => packed + each.charCodeAt(0) * 2 ** (8 * place),
    0,
  );
}

/** The space in bytes that `writeIds()` needs for these ids. Nearly all vocabularies have less than a million ids. */
export function roomForIds(ids: ArrayLike<number>): number {
  let largest = 0;
  for (let place = 0; place < ids.length; place++) largest = Math.max(largest, ids[place]!);
  return ids.length * (largest < million ? "999999,".length : mostBytesPerId) + idSlack;
}

/**
 * Returns the length in bytes of the text that `writeIds()` writes; -1 if an id is not an integer from 0 to 2^31 - 1.
 */
export function idTextLength(ids: ArrayLike<unknown>): number {
  // One comma after each id but the last.
  let length = Math.max(0, ids.length - 1);
  for (let place = 0; place < ids.length; place++) {
    const id = ids[place];
    if (typeof id !== "number" || (id | 0) !== id || id < 0) return -1;
    if (id < 1_000) length += leadingLength[id]!;
    else if (id < million) length += leadingLength[(id / 1_000) | 0]! + 3;
    else if (id < milliard) length += leadingLength[(id / million) | 0]! + 6;
    else length += leadingLength[(id / milliard) | 0]! + 9;
  }
  return length;
}

/**
 * Writes ids as a JSON list without brackets, several digits at a time. A general writer takes four times as long,
 * and each turn sends a prompt of many thousand ids.
 *
 * @param bytes - The target, with space after `start` for `mostBytesPerId` of each id (7 if all are below a
 * million) and `idSlack` more.
 * @param ids - The ids from index `first` to `last` (exclusive) are written; at least one.
 * @returns the end of the text; -1 if an id is not an integer from 0 to 2^31 - 1.
 */
export function writeIds(
  bytes: DataView,
  start: number,
  ids: ArrayLike<unknown>,
  { first = 0, last = ids.length }: { readonly first?: number; readonly last?: number } = {},
): number {
  let end = start;
  // A plain loop for speed: it handles a complete prompt each turn.
  for (let place = first; place < last; place++) {
    const id = ids[place];
    if (typeof id !== "number" || (id | 0) !== id || id < 0) return -1;
    if (id < 1_000) {
      bytes.setUint32(end, leading[id]!, true);
      end += leadingLength[id]!;
      bytes.setUint8(end++, comma);
      continue;
    }
    const thousands = (id / 1_000) | 0;
    if (id < million) {
      bytes.setUint32(end, leading[thousands]!, true);
      end += leadingLength[thousands]!;
    } else {
      end = writeThousands(bytes, end, id);
    }
    bytes.setUint32(end, following[id - thousands * 1_000]!, true);
    end += 4;
  }
  // Without the last comma.
  return end - 1;
}

/** Writes all but the last three digits of an id above a million. */
function writeThousands(bytes: DataView, start: number, id: number): number {
  let end = start;
  const milliards = (id / milliard) | 0;
  const millions = ((id / million) | 0) - milliards * 1_000;
  if (milliards > 0) {
    bytes.setUint8(end++, zero + milliards);
    bytes.setUint32(end, following[millions]!, true);
    end += 3;
  } else {
    bytes.setUint32(end, leading[millions]!, true);
    end += leadingLength[millions]!;
  }
  bytes.setUint32(end, following[((id / 1_000) | 0) % 1_000]!, true);
  return end + 3;
}
