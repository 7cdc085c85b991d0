import { spreadBits } from "../../values/hash-text.ts";
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
    const first = spreadBits(spreadBits(spreadBits(position ^ key[0]) + key[1]) ^ key[2]);
    const second = spreadBits(first + key[3]);
    return ((first >>> 5) * 2 ** 26 + (second >>> 6)) / 2 ** 53;
  };
}
