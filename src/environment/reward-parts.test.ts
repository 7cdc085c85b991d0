import { expect, test } from "vitest";
import { componentsFault, turnRewardsFault, weightedSum } from "./reward-parts.ts";

const whole = { value: 1, weight: 1 };

test("components add up to the reward, each by its weight", () => {
  const components = { state: { value: 1, weight: 0.75 }, format: { value: 0.5, weight: 0.5 } };
  expect(weightedSum(components)).toBe(1);
  expect(componentsFault(components, 1)).toBeUndefined();
  expect(componentsFault(components, Math.fround(1 + 1e-8))).toBeUndefined();
  expect(componentsFault(components, 0.99)).toBe("components adds up to 1, and the reward is 0.99");
});

test.each([
  [[], "components is not an object"],
  [{}, "components is empty, expected at least one"],
  [
    { style: 1 },
    "components.style is 1, expected a value, a weight and a product of both that are finite in 32 bits",
  ],
  [
    { style: { value: 1 } },
    "components.style is { value: 1, weight: undefined }, expected a value, a weight and a product of both that are finite in 32 bits",
  ],
  [
    { style: { value: 1e39, weight: 0 } },
    "components.style is { value: 1e+39, weight: 0 }, expected a value, a weight and a product of both that are finite in 32 bits",
  ],
  [
    { style: { value: 0, weight: -1e39 } },
    "components.style is { value: 0, weight: -1e+39 }, expected a value, a weight and a product of both that are finite in 32 bits",
  ],
  [
    { style: { value: 1e20, weight: 1e20 } },
    "components.style is { value: 100000000000000000000, weight: 100000000000000000000 }, expected a value, a weight and a product of both that are finite in 32 bits",
  ],
  [{ " ": whole }, 'components has the name " ", expected one that is not empty'],
  [
    { "a\nb": whole },
    'components has the name "a\\nb", expected one line without control characters',
  ],
  [
    { "a\ud800": whole },
    'components has the name "a\\ud800", expected text without halves of surrogate pairs',
  ],
  [
    { "a\u2028b": 1 },
    'components has the name "a\u2028b", expected one line without control characters',
  ],
  [
    { reward: whole },
    'components has the name "reward", which means the whole reward: choose another one',
  ],
  [
    { total: whole },
    'components has the name "total", which means the whole reward: choose another one',
  ],
])("components %j are refused", (components, fault) => {
  expect(componentsFault(components, 1)).toBe(fault);
});

test("turn rewards are one for each turn, and add up to the reward", () => {
  expect(turnRewardsFault([0.25, 0, 0.75], 1, 3)).toBeUndefined();
  expect(turnRewardsFault([0.1, 0.2, 0.3], 0.6, 3)).toBeUndefined();
  expect(turnRewardsFault([1], 1, 2)).toBe(
    "turnRewards has 1 entries, expected one for each of the 2 turns",
  );
  expect(turnRewardsFault([1, 1], 1, 2)).toBe("turnRewards adds up to 2, and the reward is 1");
  expect(turnRewardsFault([1, null], 1)).toBe(
    "turnRewards[1] is null, expected a number that is finite in 32 bits",
  );
  expect(turnRewardsFault([1e39], 1)).toBe(
    "turnRewards[0] is 1e+39, expected a number that is finite in 32 bits",
  );
  expect(turnRewardsFault([1], undefined)).toBe("turnRewards is there without a reward");
});

test("sums of many terms may differ by the rounding of 32 bits", () => {
  const earned = Array.from({ length: 1000 }, () => 0.1234567);
  const sum = earned.reduce((total, one) => total + one, 0);
  expect(turnRewardsFault(earned, Math.fround(sum))).toBeUndefined();
  expect(turnRewardsFault(earned, sum + 0.001)).toContain("turnRewards adds up to");
});

test("the number of parts has no limit, and a component may have any member's name", () => {
  expect(turnRewardsFault(new Array<number>(200_000).fill(0), 0)).toBeUndefined();
  const inherited = JSON.parse('{"__proto__": {"value": 1, "weight": 1}}') as object;
  expect(componentsFault(inherited, 1)).toBeUndefined();
  expect(componentsFault(inherited, 2)).toBe("components adds up to 1, and the reward is 2");
});
