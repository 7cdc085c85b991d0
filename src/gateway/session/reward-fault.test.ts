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
      why: "it has turnRewards before the session's end: send them with /finish",
    },
  ],
  [
    { reward: 1, rewards: [1] },
    {
      place: "rewards",
      why: "it has rewards, expected reward, components, turnRewards and details only",
    },
  ],
])("the reward %j has the fault %j", (reward, fault) => {
  expect(rewardFault(reward)).toEqual(fault);
});

test.each([
  [[0.25, 0, 0.75], undefined],
  [[1, 0], "turnRewards has 2 entries, expected one for each of the 3 turns"],
  [[1, 0, "0"], 'turnRewards[2] is "0", expected a number that is finite in 32 bits'],
  [[1, 0, 1], "turnRewards adds up to 2, and the reward is 1"],
  [
    [0.5, 0.25, 0.25],
    "turnRewards[1] is 0.25, and this turn is in no row (rejected: resumed-sibling): expected 0",
  ],
])("the rewards %j of a session's turns have the fault %j", (turnRewards, why) => {
  const tree = [{ turnIndex: 1 }, { rejected: "resumed-sibling" } as const, { turnIndex: 0 }];
  const fault = why === undefined ? undefined : { place: "turnRewards", why };
  expect(rewardFault({ reward: 1, turnRewards }, tree)).toEqual(fault);
});
