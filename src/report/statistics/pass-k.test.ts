import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { choose, divide } from "./binomial.ts";
import { passAtK, passHatK } from "./pass-k.ts";

describe("passHatK() and passAtK()", () => {
  test.each([
    [4, 4, 2, 1, 1],
    [0, 4, 2, 0, 0],
    [2, 4, 1, 0.5, 0.5],
    [2, 4, 2, 1 / 6, 5 / 6],
    [2, 4, 3, 0, 1],
    [1, 4, 4, 0, 1],
  ])("%i of %i, k = %i", (successCount, trialCount, k, hat, at) => {
    expect(passHatK({ successCount, trialCount }, k)).toBe(hat);
    expect(passAtK({ successCount, trialCount }, k)).toBe(at);
  });

  test("are the shares of all draws of k attempts", () => {
    const outcomes = fc.array(fc.boolean(), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(outcomes, fc.nat(8), (trials, more) => {
        const k = 1 + (more % trials.length);
        const draws = subsets(trials, k);
        const tally = { successCount: trials.filter(Boolean).length, trialCount: trials.length };
        const share = (count: number) => count / draws.length;
        expect(passHatK(tally, k)).toBe(share(draws.filter((draw) => draw.every(Boolean)).length));
        expect(passAtK(tally, k)).toBe(share(draws.filter((draw) => draw.some(Boolean)).length));
      }),
    );
  });
});

function subsets<Item>(items: readonly Item[], size: number): Item[][] {
  if (size === 0) return [[]];
  return items.flatMap((item, index) =>
    subsets(items.slice(index + 1), size - 1).map((rest) => [item, ...rest]),
  );
}

describe("divide()", () => {
  test("rounds once, however large the numbers", () => {
    expect(divide(1n, 3n)).toBe(1 / 3);
    expect(divide(10n ** 400n, 3n * 10n ** 400n)).toBe(1 / 3);
    expect(divide(0n, 5n)).toBe(0);
    // Halfway between two floats and a little more: rounds up, not to even.
    expect(divide(2n ** 200n + 2n ** 147n + 1n, 2n ** 200n)).toBe(1 + 2 ** -52);
    expect(divide(2n ** 200n + 2n ** 147n, 2n ** 200n)).toBe(1);
  });
});

describe("choose()", () => {
  test("counts the ways", () => {
    expect(choose(5, 2)).toBe(10n);
    expect(choose(2, 3)).toBe(0n);
    expect(choose(100, 50)).toBe(100891344545564193334812497256n);
  });
});
