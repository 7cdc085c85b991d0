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

  test("keeps a reward of 0", () => {
    const end = { outcome: "truncated", stopReason: "max-turns" } as const;
    const scored = scoredEnd(end, { reward: 0, details: {} });
    expect(scored).toEqual({ ...end, reward: 0, rewardDetails: {} });
    expect(checkEnd({ ...scored })).toEqual([]);
  });
});
