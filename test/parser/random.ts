/** Numbers that a seed determines. */
export interface Random {
  /** An integer from 0 to `limit`, exclusive. */
  below(limit: number): number;
  /** One of the values, which must not be empty. */
  pick<T>(values: readonly T[]): T;
}

/**
 * Makes a small generator of random numbers. The same seed gives the same numbers.
 *
 * **Source:** the mulberry32 generator of Tommy Ettinger, which is in the public domain.
 */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return { below, pick: (values) => values[below(values.length)]! };
}
