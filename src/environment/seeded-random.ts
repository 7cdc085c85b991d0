import { hashText, spreadBits } from "../internal/hash-text.ts";

/** A repeatable source of chance. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** True with the given probability. */
  chance(probability: number): boolean;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  /** One entry of a list that is not empty. */
  pick<Item>(items: readonly Item[]): Item;
  /** The list in another order. */
  shuffle<Item>(items: readonly Item[]): Item[];
}

/**
 * Chance that is a function of a text: the same text gives the same numbers on every machine. For
 * drawing tasks; no cryptography.
 */
export function seededRandom(seed: string): Random {
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
      type Item = (typeof items)[number];
      // Filled one by one: a list that is copied whole may share its places with a literal until it is written to.
      const left: Item[] = [];
      for (let index = 0; index < items.length; index++) left.push(items[index] as Item);
      const shuffled: Item[] = [];
      for (let count = left.length; count > 0; count--) {
        // Those that are left stay in their order.
        const place = between(0, count - 1);
        shuffled.push(left[place] as Item);
        for (let index = place + 1; index < count; index++) left[index - 1] = left[index] as Item;
      }
      return shuffled;
    },
  };
}
