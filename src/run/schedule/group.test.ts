import { expect, test, vi } from "vitest";
import { episodeRow } from "../../episode/episode-row.fixture.ts";
import { advantages } from "./advantages.ts";
import { createSpreadFilter, rewardsOf, type EpisodeGroup } from "./group.ts";

/** A group of attempts with these rewards and numbers of sampled tokens. */
function groupOf(...attempts: readonly (readonly [reward: number, sampled: number])[]) {
  const episodes = attempts.map(([reward, sampledTokenCount], sampleIndex) => {
    const row = episodeRow({ taskIndex: 0, sampleIndex });
    return { ...row, reward, counts: { ...row.counts, sampledTokenCount }, segments: [] };
  });
  return { episodes } as unknown as EpisodeGroup;
}

test("the reward of an attempt without a sampled token does not move the baseline of the others", () => {
  const group = groupOf([1, 5], [0, 5], [9, 0]);
  expect(rewardsOf(group)).toEqual([1, 0, undefined]);
  expect(advantages(rewardsOf(group), "dr-grpo")).toEqual([0.5, -0.5, undefined]);
});

test.each(["grpo", "dr-grpo", "rloo"] as const)(
  "NaN, null and infinite rewards stand for attempts without a reward (%s)",
  (estimator) => {
    const expected = advantages([1, undefined, 3, undefined, undefined], estimator);
    expect(expected.map((value) => value !== undefined)).toEqual([true, false, true, false, false]);
    expect(advantages([1, NaN, 3, null, -Infinity], estimator)).toEqual(expected);
    expect(advantages([1, NaN, null], estimator)).toEqual([undefined, undefined, undefined]);
  },
);

test.each(["grpo", "dr-grpo", "rloo"] as const)(
  "equal rewards have an advantage of exactly 0, although their sum is rounded (%s)",
  (estimator) => {
    for (const reward of [0.1, 0.7, 1 / 3, -0.1, 1e15 + 0.3]) {
      for (const count of [2, 3, 7, 10]) {
        const rewards = Array.from({ length: count }, () => reward);
        expect(advantages(rewards, estimator)).toEqual(rewards.map(() => 0));
      }
    }
  },
);

test("an unknown estimator is refused", () => {
  expect(() => advantages([1, 2], "gae" as "grpo")).toThrow(
    new TypeError(
      "Cannot compute advantages: the estimator is gae, expected one of grpo, dr-grpo, rloo",
    ),
  );
});

test("a filter warns of many groups in a row without a spread", () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  try {
    const filter = createSpreadFilter();
    const equal = { ...groupOf([0, 5], [0, 5]), groupId: "lamps/train/4" };
    const play = (count: number) => Array.from({ length: count }, () => filter(equal));
    play(31);
    filter(groupOf([1, 5], [0, 5]));
    play(31);
    expect(warn).not.toHaveBeenCalled();
    play(1);
    expect(warn.mock.calls).toEqual([
      [
        "32 groups in a row are left out because their rewards differ too little (the last one, lamps/train/4: " +
          "rewards 0, 0). Nothing can be trained until they do: choose easier or harder tasks, more samples, or a " +
          "reward for partial success",
      ],
    ]);
    play(31);
    expect(warn).toHaveBeenCalledTimes(1);
    play(1);
    expect(warn).toHaveBeenCalledTimes(2);
  } finally {
    warn.mockRestore();
  }
});

test("such an attempt is no reason to keep a group", () => {
  expect(createSpreadFilter()(groupOf([1, 5], [1, 5], [0, 0]))).toBe(false);
  expect(createSpreadFilter()(groupOf([1, 5], [0, 5], [0, 0]))).toBe(true);
});
