import { expect, test } from "vitest";
import { rewardFault } from "./reward-fault.ts";

test.each([
  [{ reward: 1 }, undefined],
  [
    { reward: 1, details: { why: "done" }, components: { a: { value: 2, weight: 0.5 } } },
    undefined,
  ],
  [undefined, { place: "reward", why: "it is not a number" }],
  [{ reward: "1" }, { place: "reward", why: "it is not a number" }],
  [
    { reward: 1, components: { a: { value: 2, weight: 1 } } },
    { place: "components", why: "components adds up to 2, and the reward is 1" },
  ],
  [
    { reward: 1, turnRewards: [1] },
    {
      place: "turnRewards",
      why: "it has turnRewards, expected reward, components and details only",
    },
  ],
])("the reward %j has the fault %j", (reward, fault) => {
  expect(rewardFault(reward)).toEqual(fault);
});
