import { describe, expect, test } from "vitest";
import { episodeRow } from "../../episode/episode-row.fixture.ts";
import type { Episode } from "../../episode/episode.ts";
import { advantages } from "./advantages.ts";
import type { EpisodeGroup } from "./group.ts";
import { turnAdvantages, turnReturns } from "./turn-advantages.ts";

function attempt(turnCount: number, fields: Partial<Episode>): Episode {
  const turns = Array.from({ length: turnCount }, (_, turnIndex) => ({ turnIndex }));
  const { sampleHashes: _, ...row } = episodeRow({ taskIndex: 0, sampleIndex: 0 });
  return { ...row, segments: [], turns: turns as unknown as Episode["turns"], ...fields };
}

function groupOf(...episodes: readonly Episode[]): EpisodeGroup {
  const task = { id: "t", index: 0, split: "test", data: {} } as unknown as EpisodeGroup["task"];
  return { groupId: "t", groupIndex: 0, task, episodes };
}

test("a turn's return has the discounted rewards of the later turns", () => {
  const played = attempt(3, { reward: 1, turnRewards: [0.5, 0, 0.5] });
  expect(turnReturns(played, 1)).toEqual([1, 0.5, 0.5]);
  expect(turnReturns(played, 0.5)).toEqual([0.625, 0.25, 0.5]);
  expect(turnReturns(attempt(3, { reward: 2 }), 0.5)).toEqual([0.5, 1, 2]);
});

test("the turns of an agent follow each other as they were sampled, not row by row", () => {
  // A sub-agent's row, turns 2 and 3, lies between the first and the last turn of the main row.
  const tree = [0, 2, 3, undefined, 1].map((turnIndex) => ({ turnIndex }));
  const played = attempt(4, { reward: 1, tree: tree as unknown as NonNullable<Episode["tree"]> });
  expect(turnReturns(played, 0.5)).toEqual([0.125, 1, 0.25, 0.5]);
});

describe("turnAdvantages()", () => {
  const shaped = attempt(2, { reward: 1, turnRewards: [0.75, 0.25] });
  const late = attempt(3, { reward: 0 });
  const broken = attempt(2, {});

  test("compares the return of each turn with those of the group's attempts", () => {
    const group = groupOf(shaped, late, broken);
    expect(turnAdvantages(group, "dr-grpo")).toEqual([[0.5, -0.25], [-0.5, -0.5, -0.5], undefined]);
    expect(turnAdvantages(group, "rloo")).toEqual([[1, 0.25], [-1, -1, -1], undefined]);
    expect(turnAdvantages(group, "dr-grpo", { discount: 0 })).toEqual([
      [0.375, -0.125],
      [-0.375, -0.375, -0.375],
      undefined,
    ]);
  });

  test("gives all turns the attempt's advantage if no turn has a reward of its own", () => {
    const plain = [
      attempt(2, { reward: 1 }),
      attempt(3, { reward: 0 }),
      attempt(1, { reward: 0.5 }),
    ];
    for (const estimator of ["grpo", "dr-grpo", "rloo"] as const) {
      const own = advantages(
        plain.map(({ reward }) => reward),
        estimator,
      );
      expect(turnAdvantages(groupOf(...plain), estimator)).toEqual(
        plain.map(({ turns }, index) => turns.map(() => own[index])),
      );
    }
  });

  test("needs two attempts, and a discount from 0 to 1", () => {
    expect(turnAdvantages(groupOf(shaped, broken), "grpo")).toEqual([undefined, undefined]);
    expect(() => turnAdvantages(groupOf(shaped, late), "grpo", { discount: 1.5 })).toThrow(
      "Cannot compute advantages: the discount is 1.5, expected a number from 0 to 1",
    );
  });
});
