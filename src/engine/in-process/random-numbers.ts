import { createHash } from "node:crypto";

/** A number in [0, 1) for each position of a sequence, 53 bits of it random. */
type RandomNumbers = (position: number) => number;

/**
 * Random numbers that depend on nothing but the seed, the session and the position: neither on what
 * else is sampled nor on when, so the same run draws the same ids whatever the scheduling, and a turn
 * that is sampled again comes out the same.
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
    const first = mix(mix(mix(position ^ key[0]) + key[1]) ^ key[2]);
    const second = mix(first + key[3]);
    return ((first >>> 5) * 2 ** 26 + (second >>> 6)) / 2 ** 53;
  };
}

/**
 * Spreads 32 bits over 32 bits.
 *
 * **Source:** fmix32 of aappleby/smhasher src/MurmurHash3.cpp.
 */
function mix(value: number): number {
  let state = value | 0;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return state ^ (state >>> 16);
}
