import { createHash } from "node:crypto";

/** Returns a number in [0, 1) with 53 random bits for a position of a sequence. */
type RandomNumbers = (position: number) => number;

/**
 * Creates random numbers that depend only on the seed, the session and the position. The same run
 * draws the same ids in any scheduling, and so does a turn that is sampled again.
 */
export function seededRandomNumbers(seed: number, sessionId: string): RandomNumbers {
  const digest = createHash("sha256").update(`${seed}\n${sessionId}`).digest();
  const key = [0, 4, 8, 12].map((offset) => digest.readInt32LE(offset)) as [
    number,
    number,
    number,
    number,
  ];
  return (position) => {
    const first = mixBits(mixBits(mixBits(position ^ key[0]) + key[1]) ^ key[2]);
    const second = mixBits(first + key[3]);
    return ((first >>> 5) * 2 ** 26 + (second >>> 6)) / 2 ** 53;
  };
}

/**
 * Mixes the bits of a 32-bit number.
 *
 * **Source:** fmix32 of aappleby/smhasher src/MurmurHash3.cpp.
 */
export function mixBits(value: number): number {
  let state = value | 0;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return state ^ (state >>> 16);
}
