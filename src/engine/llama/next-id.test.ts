import { describe, expect, test } from "vitest";
import { optionsToDraw, optionsToScore, drawId, firstCandidates, logprobOf } from "./next-id.ts";

const PLAIN = { temperature: 0.7, topK: -1, topP: 1, minP: 0 };
const HALF = { random: 0.5, candidates: 256 };

describe("optionsToDraw()", () => {
  test("turns the library's filters off, even if the call has some", () => {
    for (const filter of [{}, { topK: 5 }, { topP: 0.5 }, { minP: 0.1 }, { temperature: 0 }]) {
      const { options } = optionsToDraw({ ...PLAIN, ...filter }, HALF);
      expect(options).toMatchObject({ topK: 0, topP: 1, minP: 0 });
    }
  });

  test("returns a seed of 32 bits for each id, never the one that means any", () => {
    const seedOf = (random: number) => optionsToDraw(PLAIN, { ...HALF, random }).options.seed;
    expect(seedOf(0)).toBe(0);
    expect(seedOf(0.5)).toBe(2 ** 31 - 1);
    expect(seedOf(1 - 2 ** -53)).toBe(2 ** 32 - 2);
  });

  test("requests few logits without a filter, and the candidates with one", () => {
    expect(optionsToDraw(PLAIN, HALF)).toMatchObject({
      token: true,
      logits: { filter: { includeSelected: true, includeTop: 1 } },
    });
    const filtered = optionsToDraw({ ...PLAIN, topP: 0.9 }, HALF);
    expect(filtered.token).toBeUndefined();
    expect(filtered.logits.filter).toEqual({ includeTop: 256 });
    expect(firstCandidates({ ...PLAIN, topK: 40 })).toBe(40);
  });
});

describe("drawId()", () => {
  // Five ids with weights 1, 1/2, 1/4, 1/8 and 1/8: a total of 2.
  const weights = [1, 0.5, 0.25, 0.125, 0.125];
  const evaluate = (count: number) => ({
    next: {
      logits: new Map(weights.slice(0, count).map((weight, id) => [id + 10, Math.log(weight)])),
      totalLogitWeight: 2,
    },
  });

  test("returns the logprob before the filter", () => {
    const sampling = { ...PLAIN, topK: 2 };
    const drawn = drawId(evaluate(2), sampling, { random: 0.9, candidates: 2 });
    expect(drawn?.id).toBe(11);
    expect(drawn?.logprob).toBeCloseTo(Math.log(0.25), 12);
  });

  test("draws among the ids that each filter keeps of the complete distribution", () => {
    const ids = (filter: object) => [
      ...new Set(
        Array.from({ length: 64 }, (_, index) => {
          const at = { random: index / 64, candidates: 256 };
          return drawId(evaluate(5), { ...PLAIN, ...filter }, at)?.id;
        }),
      ),
    ];
    expect(ids({ topK: 3 })).toEqual([10, 11, 12]);
    expect(ids({ topP: 0.5 })).toEqual([10]);
    expect(ids({ topP: 0.75 })).toEqual([10, 11]);
    expect(ids({ minP: 0.25 })).toEqual([10, 11, 12]);
    expect(ids({ topK: 4, topP: 0.99, minP: 0.2 })).toEqual([10, 11, 12]);
  });

  test("requests more candidates if the filters may keep others", () => {
    const at = { random: 0.5, candidates: 2 };
    expect(drawId(evaluate(2), { ...PLAIN, topP: 0.9 }, at)).toBeUndefined();
    expect(drawId(evaluate(2), { ...PLAIN, minP: 0.1 }, at)).toBeUndefined();
    expect(drawId(evaluate(2), { ...PLAIN, topP: 0.7 }, at)?.id).toBe(10);
    expect(drawId(evaluate(2), { ...PLAIN, minP: 0.6 }, at)?.id).toBe(10);
  });

  test("takes the most likely at temperature 0 with any filters", () => {
    const greedy = { ...PLAIN, temperature: 0, topP: 0.5 };
    expect(firstCandidates(greedy)).toBe(1);
    expect(optionsToDraw(greedy, HALF).options.temperature).toBe(1);
    const evaluated = { next: { logits: new Map([[12, 3]]), totalLogitWeight: 4 } };
    const drawn = drawId(evaluated, greedy, HALF);
    expect(drawn).toEqual({ id: 12, logprob: -Math.log(4) });
  });
});

describe("logprobOf()", () => {
  test("is finite if the probability is below single precision", () => {
    const { logits, totalLogitWeight } = {
      logits: new Map([
        [5, 90],
        [9, -60],
      ]),
      totalLogitWeight: 1,
    };
    expect(logprobOf({ next: { logits, totalLogitWeight } }, 9)).toBe(-150);
  });

  test("is never above 0", () => {
    const next = { logits: new Map([[5, 1]]), totalLogitWeight: 1 - 2 ** -24 };
    expect(logprobOf({ next }, 5)).toBe(0);
  });
});

test("`optionsToScore()` scores at temperature 1 if the temperature is 0", () => {
  expect(optionsToScore(7, 0).options.temperature).toBe(1);
  expect(optionsToScore(7, 0.3)).toMatchObject({
    logits: { filter: { tokens: [7], includeTop: 1 } },
    options: { temperature: 0.3 },
  });
});
