import { hashText, spreadBits } from "../values/hash-text.ts";

/** A repeatable random number generator. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** True with the given probability. */
  chance(probability: number): boolean;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  /** One entry of a list that is not empty. */
  pick<Item>(items: readonly Item[]): Item;
  /** Returns the list in random order. */
  shuffle<Item>(items: readonly Item[]): Item[];
}

/**
 * Returns a generator that is seeded by a text: the same text gives the same numbers on every machine. Use it to
 * draw tasks; it is not cryptographic.
 */
export function createSeededRandom(seed: string): Random {
  let state = hashText(seed);
  function next(): number {
    state = (state + 0x9e3779b9) | 0;
    return spreadBits(state) / 2 ** 32;
  }
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  const pick = <Item>(items: readonly Item[]) => items[between(0, items.length - 1)] as Item;
  return {
    next,
    between,
    pick,
    chance: (probability) => next() < probability,
    shuffle(items) {
      const shuffled = [...items];
      for (let count = shuffled.length; count > 0; count--) {
        // Moves the drawn item to the end; the others keep their order.
        const place = between(0, count - 1);
        const drawn = shuffled[place] as (typeof shuffled)[0];
        const end = shuffled.length - 1;
        for (let index = place; index < end; index++) {
          shuffled[index] = shuffled[index + 1] as (typeof shuffled)[0];
        }
        shuffled[end] = drawn;
      }
      return shuffled;
    },
  };
}
