import { PythonValueError } from "./python-error.ts";

/**
 * Returns the result of Python's `random.Random(seed).sample(items, count)`.
 *
 * **Source:** CPython 3.11, `Lib/random.py` (`Random.sample`, `_randbelow_with_getrandbits`) and
 * `Modules/_randommodule.c`.
 *
 * @param seed - An integer; its sign is ignored, as in Python.
 * @throws PythonValueError if there are fewer items than `count`, or `count` is negative.
 */
export function pythonRandomSample<Item>(
  items: readonly Item[],
  count: number,
  seed: number,
): Item[] {
  if (!(count >= 0 && count <= items.length)) {
    throw new PythonValueError("Sample larger than population or is negative");
  }
  const nextBelow = randomBelow(mersenneTwister(seed));
  // CPython chooses between a copy of the list and a set of indexes by memory, which affects the draws.
  const setSize = 21 + (count > 5 ? 4 ** Math.ceil(Math.log(count * 3) / Math.log(4)) : 0);
  return items.length <= setSize
    ? sampleFromPool(items, count, nextBelow)
    : sampleByPlace(items, count, nextBelow);
}

type NextBelow = (limit: number) => number;

function sampleFromPool<Item>(items: readonly Item[], count: number, nextBelow: NextBelow): Item[] {
  const pool = [...items];
  return Array.from({ length: count }, () => {
    const place = nextBelow(pool.length);
    const item = pool[place] as Item;
    const last = pool.pop() as Item;
    if (place < pool.length) pool[place] = last;
    return item;
  });
}

function sampleByPlace<Item>(items: readonly Item[], count: number, nextBelow: NextBelow): Item[] {
  const places = new Set<number>();
  // An index that was drawn before is drawn again.
  while (places.size < count) places.add(nextBelow(items.length));
  return Array.from(places, (place) => items[place] as Item);
}

/** Integers from 0 up to a limit of at most 2^32, exclusive. */
function randomBelow(nextWord: () => number): NextBelow {
  return (limit) => {
    const spareBits = Math.clz32(limit);
    let drawn = nextWord() >>> spareBits;
    while (drawn >= limit) drawn = nextWord() >>> spareBits;
    return drawn;
  };
}

const stateSize = 624;
const shiftSize = 397;

/**
 * The 32-bit words of Python's generator for a seed.
 *
 * **Source:** Matsumoto and Nishimura, MT19937, seeded by array.
 */
function mersenneTwister(seed: number): () => number {
  const state = seededState(wordsOf(seed));
  let index = stateSize;
  return () => {
    if (index === stateSize) {
      renew(state);
      index = 0;
    }
    let word = state[index++] as number;
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  };
}

/** The seed in base 2^32, lowest word first; at least one word. */
function wordsOf(seed: number): number[] {
  const words: number[] = [];
  let rest = BigInt(Math.abs(seed));
  do {
    words.push(Number(rest & 0xffff_ffffn));
    rest >>= 32n;
  } while (rest > 0n);
  return words;
}

function seededState(key: readonly number[]): Uint32Array {
  const state = new Uint32Array(stateSize);
  const at = (index: number): number => state[index] as number;
  const mixed = (index: number): number => at(index - 1) ^ (at(index - 1) >>> 30);
  state[0] = 19_650_218;
  for (let index = 1; index < stateSize; index++) {
    state[index] = Math.imul(1_812_433_253, mixed(index)) + index;
  }
  let index = 1;
  const step = (): void => {
    index += 1;
    if (index < stateSize) return;
    state[0] = at(stateSize - 1);
    index = 1;
  };
  for (let round = 0; round < Math.max(stateSize, key.length); round++) {
    const place = round % key.length;
    const word = key[place] as number;
    state[index] = (at(index) ^ Math.imul(mixed(index), 1_664_525)) + word + place;
    step();
  }
  for (let round = 1; round < stateSize; round++) {
    state[index] = (at(index) ^ Math.imul(mixed(index), 1_566_083_941)) - index;
    step();
  }
  state[0] = 0x8000_0000;
  return state;
}

function renew(state: Uint32Array): void {
  for (let index = 0; index < stateSize; index++) {
    const next = state[(index + 1) % stateSize] as number;
    const joined = ((state[index] as number) & 0x8000_0000) | (next & 0x7fff_ffff);
    const shifted = state[(index + shiftSize) % stateSize] as number;
    state[index] = shifted ^ (joined >>> 1) ^ (joined & 1 ? 0x9908_b0df : 0);
  }
}
