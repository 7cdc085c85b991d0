/** Bytes that an id takes at most, its comma included. */
export const mostBytesPerId = "2147483647,".length;

/** Bytes behind the last id that are written over on the way. */
export const idSlack = 4;

const comma = ",".charCodeAt(0);
const zero = "0".charCodeAt(0);
const million = 1_000_000;
const milliard = 1_000_000_000;

/** The digits of 0 to 999 as they begin a number, the first in the lowest byte, and how many there are. */
const leading = new Uint32Array(1_000);
const leadingLength = new Uint8Array(1_000);
/** Three digits of 0 to 999, as they go on in a number; a comma comes behind them in the highest byte. */
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

/** The room that `writeIds()` takes for all of these ids, in bytes: nearly all vocabularies are below a million. */
export function roomForIds(ids: readonly number[]): number {
  let largest = 0;
  for (let place = 0; place < ids.length; place++) largest = Math.max(largest, ids[place]!);
  return ids.length * (largest < million ? "999999,".length : mostBytesPerId) + idSlack;
}

/**
 * Writes ids as JSON spells a list of them, without its brackets, several digits at a time: a general writer
 * takes four times as long, and a prompt of many thousands is sent each turn.
 *
 * @param bytes - With room behind `start` for `mostBytesPerId` (7 where each is below a million) of each id
 *   and `idSlack` more.
 * @param ids - Those from place `first` up to, not including, `last` are written; at least one.
 * @returns where they end; -1 where one is no whole number from 0 to 2^31 - 1.
 */
export function writeIds(
  bytes: DataView,
  start: number,
  ids: readonly unknown[],
  { first = 0, last = ids.length }: { readonly first?: number; readonly last?: number } = {},
): number {
  let end = start;
  // A plain loop: it goes over a whole prompt each turn.
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

/** All but the last three digits of an id of more than a million. */
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
