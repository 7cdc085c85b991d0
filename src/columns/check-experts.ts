import { expertBytes, type ExpertShape } from "./column-specs.ts";
import { findSizeProblem, type CheckedPart, type PausingCheck } from "./column-problem.ts";

/** Number of ids that are checked without a pause. */
const idsAtOnce = 131_072;

/** State of a layer. In a dense layer, all ids of all rows are 0. */
const unknownLayer = 0;
const denseLayer = 1;
const mixtureLayer = 2;

/**
 * Checks the ids of routed experts. Each is below the number of experts, and the ids of a token in a layer differ. A
 * layer has zeros either in all of its rows or in no row.
 *
 * With one expert a token, a dense layer cannot be distinguished from expert 0.
 */
export function* checkExperts(part: CheckedPart, shape: ExpertShape): PausingCheck {
  const { layerCount, perToken } = shape;
  const name = "routedExperts";
  const rowLength = layerCount * perToken;
  const wrongSize = findSizeProblem(name, part, rowLength * expertBytes(shape));
  if (wrongSize !== undefined) return wrongSize;
  const ids = toIds(part.bytes, shape);
  const layers = new Uint8Array(layerCount);
  /** `stamps[id]` is the number of the last layer of a row with this id. */
  const stamps = new Uint32Array(2 ** (8 * expertBytes(shape)));
  const words = toWords(part.bytes, shape);
  const rowsAtOnce = Math.max(1, Math.floor(idsAtOnce / rowLength));
  for (let row = 0; row < part.rows; row += rowsAtOnce) {
    const end = Math.min(row + rowsAtOnce, part.rows);
    const wrong = findWrongRow(ids, { row, end, layers, stamps, words, shape });
    if (wrong >= 0) return describeLayer(ids, { place: wrong, layers, shape, start: part.start });
    yield;
  }
  if (perToken === 1 || layers.some((state) => state !== denseLayer)) return undefined;
  return {
    problem: `column ${name} is zero in all ${layerCount} layers`,
    expected: "a mixture of experts in one layer at least",
  };
}

/** Returns the index of the first id of a layer that cannot be right, or -1. */
function findWrongRow(
  ids: Uint8Array | Uint16Array,
  {
    row,
    end,
    layers,
    stamps,
    words,
    shape: { layerCount, perToken, expertCount },
  }: {
    row: number;
    end: number;
    layers: Uint8Array;
    stamps: Uint32Array;
    words: Int32Array | undefined;
    shape: ExpertShape;
  },
): number {
  let place = row * layerCount * perToken;
  let stamp = row * layerCount;
  const bound = boundOf(expertCount);
  for (; row < end; row++) {
    for (let layer = 0; layer < layerCount; layer++) {
      stamp++;
      if (words !== undefined && layers[layer] === mixtureLayer) {
        const first = words[place / 4]!;
        const second = words[place / 4 + 1]!;
        if (areBelow(first, second, bound) && areDifferent(first, second)) {
          place += perToken;
          continue;
        }
      }
      let any = 0;
      let repeats = 0;
      const next = place + perToken;
      for (let at = place; at < next; at++) {
        const id = ids[at]!;
        any |= id;
        repeats |= stamps[id] === stamp ? 1 : 0;
        stamps[id] = stamp;
      }
      if (any >= expertCount && isForeign(ids, { from: place, to: next, expertCount }))
        return place;
      const isZero = any === 0 && perToken > 1;
      const state = isZero ? denseLayer : mixtureLayer;
      if (repeats !== 0 && !isZero) return place;
      if (layers[layer] === unknownLayer) layers[layer] = state;
      else if (layers[layer] !== state) return place;
      place = next;
    }
  }
  return -1;
}

/** Returns the ids as words of four bytes. `undefined` if a layer of a row is not two words. */
function toWords(bytes: Uint8Array, shape: ExpertShape): Int32Array | undefined {
  const { buffer, byteOffset, length } = bytes;
  if (shape.perToken !== 8 || expertBytes(shape) !== 1 || byteOffset % 4 !== 0) return undefined;
  return new Int32Array(buffer, byteOffset, length / 4);
}

/** A number of experts, as `areBelow()` compares with it. */
interface Bound {
  /** True up to 128 experts: no valid id has the highest bit. */
  readonly isLow: boolean;
  /** In each byte, the number that lifts the lower bits of the first invalid id to the highest bit. */
  readonly lift: number;
}

function boundOf(expertCount: number): Bound {
  const isLow = expertCount <= 128;
  return { isLow, lift: Math.imul(isLow ? 128 - expertCount : 256 - expertCount, 0x01010101) };
}

/** True if the eight bytes of two words are below the bound. No byte carries into the next: 127 + 127 fits. */
function areBelow(a: number, b: number, { isLow, lift }: Bound): boolean {
  const liftedA = ((a & 0x7f7f7f7f) + lift) | 0;
  const liftedB = ((b & 0x7f7f7f7f) + lift) | 0;
  const above = isLow ? liftedA | a | liftedB | b : (liftedA & a) | (liftedB & b);
  return (above & 0x80808080) === 0;
}

/**
 * True if the eight bytes of two words are different. Much faster than stamps, and most layers of most models have eight
 * ids. Two bytes are equal where the exclusive or of a word and a turned word has a byte of zeros.
 */
function areDifferent(a: number, b: number): boolean {
  const turned = (b << 8) | (b >>> 24);
  const turnedTwice = (b << 16) | (b >>> 16);
  const equal =
    zeroBytes(a ^ ((a << 8) | (a >>> 24))) |
    zeroBytes(a ^ ((a << 16) | (a >>> 16))) |
    zeroBytes(b ^ turned) |
    zeroBytes(b ^ turnedTwice) |
    zeroBytes(a ^ b) |
    zeroBytes(a ^ turned) |
    zeroBytes(a ^ turnedTwice) |
    zeroBytes(a ^ ((b << 24) | (b >>> 8)));
  return equal === 0;
}

/** Returns 0 if no byte of the word is zero. */
function zeroBytes(word: number): number {
  return (word - 0x01010101) & ~word & 0x80808080;
}

/** True if a layer has an id that no expert has. The bits of valid ids together can exceed the number of experts. */
function isForeign(
  ids: Uint8Array | Uint16Array,
  { from, to, expertCount }: { from: number; to: number; expertCount: number },
): boolean {
  return ids.subarray(from, to).some((id) => id >= expertCount);
}

function describeLayer(
  ids: Uint8Array | Uint16Array,
  {
    place,
    layers,
    shape: { layerCount, perToken, expertCount },
    start,
  }: { place: number; layers: Uint8Array; shape: ExpertShape; start: number },
): { problem: string; expected: string } {
  const layer = (place / perToken) % layerCount;
  const row = Math.floor(place / (layerCount * perToken)) + start;
  const found = [...ids.subarray(place, place + perToken)];
  const at = `row ${row} of column routedExperts has the experts ${found.join(", ")} in layer ${layer}`;
  if (found.some((id) => id >= expertCount)) {
    return { problem: at, expected: `ids of experts, 0 to ${expertCount - 1}` };
  }
  const isZero = perToken > 1 && found.every((id) => id === 0);
  if (isZero || new Set(found).size === perToken) {
    const kind = layers[layer] === denseLayer ? "zeros" : "experts";
    return { problem: at, expected: `${kind}, as in the rows before` };
  }
  return { problem: at, expected: `${perToken} different experts` };
}

function toIds(bytes: Uint8Array, shape: ExpertShape): Uint8Array | Uint16Array {
  if (expertBytes(shape) === 1) return bytes;
  // Lists of 16-bit numbers begin at a multiple of two.
  const { buffer, byteOffset, length } = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  return new Uint16Array(buffer, byteOffset, length / 2);
}
