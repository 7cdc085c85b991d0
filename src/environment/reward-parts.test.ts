import { expect, test } from "vitest";
import { componentsFault, turnRewardsFault, weightedSum } from "./reward-parts.ts";

test("components add up to the reward, each by its weight", () => {
  const components = { state: { value: 1, weight: 0.75 }, format: { value: 0.5, weight: 0.5 } };
  expect(weightedSum(components)).toBe(1);
  expect(componentsFault(components, 1)).toBeUndefined();
  expect(componentsFault(components, Math.fround(1 + 1e-8))).toBeUndefined();
  expect(componentsFault(components, 0.99)).toBe("components adds up to 1, and the reward is 0.99");
});

test("a sum that is not finite is no reward's sum", () => {
  const huge = { value: 1e200, weight: 1e200 };
  expect(componentsFault({ huge }, 1)).toBe("components adds up to Infinity, and the reward is 1");
});

test.each([
  [[], "components is not an object"],
  [{}, "components is empty, expected at least one"],
  [{ style: 1 }, "components.style is 1, expected a value and a weight that are finite numbers"],
  [
    { style: { value: 1 } },
    "components.style is { value: 1, weight: undefined }, expected a value and a weight that are finite numbers",
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
  expect(turnRewardsFault([1, null], 1)).toBe("turnRewards[1] is null, expected a finite number");
  expect(turnRewardsFault([1], undefined)).toBe("turnRewards is there without a reward");
});
