import { describe, expect, test } from "vitest";
import { checkEnd } from "../trajectory/check-end.ts";
import { checkScore } from "./check/check-foreign.ts";
import { scoredEnd } from "./scored-end.ts";

describe("scoredEnd()", () => {
  test.each([
    [{ outcome: "truncated", stopReason: "max-turns" } as const, "truncated"],
    [{ outcome: "completed", stopReason: "finished" } as const, "completed"],
  ])("ends an unscored attempt that was %j without a reward", (end, outcome) => {
    const details = { rewards: [null] };
    const score = checkScore({ reward: null, details }, "world.score()");
    const scored = scoredEnd(end, score);
    expect(scored).toEqual({ outcome, stopReason: "unscored", rewardDetails: details });
    expect(checkEnd({ ...scored })).toEqual([]);
  });

  test("keeps the parts of a reward, which the end's check audits", () => {
    const end = { outcome: "completed", stopReason: "finished" } as const;
    const parts = {
      components: { state: { value: 1, weight: 1 }, style: { value: 2, weight: 0.25 } },
      turnRewards: [0.5, 1],
    };
    const score = checkScore({ reward: 1.5, details: {}, ...parts }, "world.score()", 2);
    const scored = scoredEnd(end, score);
    expect(scored).toEqual({
      ...end,
      reward: 1.5,
      rewardDetails: {},
      rewardComponents: parts.components,
      turnRewards: [0.5, 1],
    });
    const turns = [{}, {}];
    expect(checkEnd({ ...scored, turns })).toEqual([]);
    expect(checkEnd({ ...scored, turns, reward: 1 })).toEqual([
      { rule: "reward", detail: "components adds up to 1.5, and the reward is 1" },
      { rule: "reward", detail: "turnRewards adds up to 1.5, and the reward is 1" },
    ]);
    expect(checkEnd({ ...scored, turns: [{}] })).toEqual([
      {
        rule: "reward",
        detail: "turnRewards has 2 entries, expected one for each of the 1 turns",
      },
    ]);
    expect(() => checkScore({ reward: 1, details: {}, ...parts }, "world.score()", 2)).toThrow(
      "components adds up to 1.5, and the reward is 1",
    );
  });

  test("keeps a reward of 0", () => {
    const end = { outcome: "truncated", stopReason: "max-turns" } as const;
    const scored = scoredEnd(end, { reward: 0, details: {} });
    expect(scored).toEqual({ ...end, reward: 0, rewardDetails: {} });
    expect(checkEnd({ ...scored })).toEqual([]);
  });
});
