import { settledRuns } from "./settled-runs.ts";

/**
 * Properties of characters, as bits.
 *
 * A character is settled if all current releases of Unicode classify it alike and no normal form of
 * another release changes it, so that JavaScript's patterns and the library's agree on it. Almost
 * all characters of real text are settled.
 */
export const characterBits = {
  unsettled: 1,
  /** Characters that normalisation to NFC may change, combine with others, or move. */
  composing: 2,
  /** Settled letters and numbers. */
  word: 4,
  /** A space, tab, line feed or carriage return. */
  space: 8,
  /** The first half of a surrogate pair. */
  pair: 16,
  /** The first unit of an added token. */
  token: 32,
} as const;

/** Number of code points that are one UTF-16 unit. */
const basicCount = 0x1_0000;

const bitsOfLetter: Readonly<Record<string, number>> = {
  U: characterBits.unsettled,
  W: characterBits.word,
  O: 0,
  w: characterBits.word | characterBits.composing,
  o: characterBits.composing,
};

/** The bits of the characters that are pairs of UTF-16 units. */
interface PairRuns {
  /** The first code points of the runs, in order. */
  readonly starts: readonly number[];
  /** The bits of each run. */
  readonly bits: readonly number[];
}

/** The properties of all characters. */
export class CharacterTable {
  /** The bits of each UTF-16 unit. */
  readonly bits: Uint8Array;
  readonly #pairs: PairRuns;

  /** @param tokens - The texts of the added tokens. */
  constructor(tokens: readonly string[]) {
    const { bits, pairs } = readRuns();
    for (const space of " \t\n\r") bits[space.charCodeAt(0)]! |= characterBits.space;
    bits.fill(characterBits.pair, 0xd800, 0xdc00);
    for (const token of tokens) bits[token.charCodeAt(0)]! |= characterBits.token;
    this.bits = bits;
    this.#pairs = pairs;
  }

  /** Returns the bits of the pair at a position. Half a pair is unsettled. */
  bitsOfPair(text: string, at: number): number {
    const point = text.codePointAt(at) as number;
    if (point < basicCount) return characterBits.unsettled;
    const { starts, bits } = this.#pairs;
    let [first, last] = [0, starts.length - 1];
    while (first < last) {
      const middle = (first + last + 1) >> 1;
      if ((starts[middle] as number) <= point) first = middle;
      else last = middle - 1;
    }
    return bits[first] as number;
  }
}

function readRuns(): { readonly bits: Uint8Array; readonly pairs: PairRuns } {
  const basic = new Uint8Array(basicCount);
  const starts: number[] = [];
  const pairBits: number[] = [];
  let at = 0;
  for (const [, letter = "", length] of settledRuns.matchAll(/([A-Za-z])(\d*)/g)) {
    const end = at + (length === "" ? 1 : Number(length));
    const bits = bitsOfLetter[letter] as number;
    basic.fill(bits, Math.min(at, basicCount), Math.min(end, basicCount));
    if (end > basicCount) {
      starts.push(Math.max(at, basicCount));
      pairBits.push(bits);
    }
    at = end;
  }
  return { bits: basic, pairs: { starts, bits: pairBits } };
}
