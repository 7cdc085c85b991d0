import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { EpisodeRow } from "../run/episode-row.ts";
import { numberedEpisodes, numberTrials } from "./number-trials.ts";

/** An attempt of a group with a name of its own, as of a run that comes to a task again. */
const attempt = (taskIndex: number, groupIndex: number, sampleIndex: number): EpisodeRow =>
  episodeRow({ taskIndex, groupIndex, sampleIndex, rolloutId: `g${groupIndex}#${sampleIndex}` });

function runOf(rows: readonly EpisodeRow[]) {
  return {
    dir: "runs/a",
    async *rows() {
      for (const row of rows) yield await Promise.resolve(row);
    },
  };
}

describe("numberTrials()", () => {
  test("goes on counting where a task comes again, however its groups end", async () => {
    const rows = [
      attempt(0, 4, 1),
      attempt(1, 1, 1),
      attempt(0, 0, 0),
      attempt(0, 4, 0),
      attempt(0, 2, 1),
      attempt(0, 0, 1),
    ];
    expect(Object.fromEntries(await numberTrials(runOf(rows)))).toEqual({
      ...{ "g0#0": 0, "g0#1": 1, "g2#1": 2, "g4#0": 3, "g4#1": 4 },
      // The first attempt of its only group is still being played.
      "g1#1": 1,
    });
  });

  test("numbers attempts of earlier versions, which counted no groups, by their places", async () => {
    const rows = [1, 0].map((sampleIndex) => episodeRow({ taskIndex: 0, sampleIndex }));
    expect([...(await numberTrials(runOf(rows)))]).toEqual([
      ["shop/test/0#0", 0],
      ["shop/test/0#1", 1],
    ]);
  });

  test("refuses an attempt that is there twice", async () => {
    const rows = [attempt(0, 3, 1), { ...attempt(0, 3, 1), rolloutId: "other#1" }];
    await expect(numberTrials(runOf(rows))).rejects.toThrow(
      "Cannot number the attempts in runs/a: g3#1 and other#1 are both attempt 1 of group 3 at shop/test/0, " +
        "expected one; turnwright verify says what is wrong",
    );
  });
});

test("numberedEpisodes() leaves out what ended since", async () => {
  const rows = [attempt(0, 1, 0), attempt(0, 0, 0)];
  const trials = await numberTrials(runOf(rows));
  const found: [string, number][] = [];
  for await (const { row, trial } of numberedEpisodes(runOf([...rows, attempt(0, 0, 1)]), trials)) {
    found.push([row.rolloutId, trial]);
  }
  expect(found).toEqual([
    ["g1#0", 1],
    ["g0#0", 0],
  ]);
});
