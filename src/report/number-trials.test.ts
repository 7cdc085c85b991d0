import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { numberedEpisodes, numberTrials } from "./number-trials.ts";

/** An attempt of a group with a name of its own, as in a run that repeats a task. */
const attempt = (taskIndex: number, groupIndex: number, sampleIndex: number): EpisodeRow =>
  episodeRow({ taskIndex, groupIndex, sampleIndex, rolloutId: `g${groupIndex}#${sampleIndex}` });

function runOf(rows: readonly EpisodeRow[], configuration: Readonly<Record<string, unknown>> = {}) {
  return {
    dir: "runs/a",
    manifest: { format: 1, turnwright: "0", configuration, found: {} } as const,
    async *rows() {
      for (const row of rows) yield await Promise.resolve(row);
    },
  };
}

async function trialsOf(rows: readonly EpisodeRow[]): Promise<Readonly<Record<string, number>>> {
  const places = await numberTrials(runOf(rows));
  return Object.fromEntries(Array.from(places, ([id, { trial }]) => [id, trial]));
}

describe("numberTrials()", () => {
  test("continues the count when a task comes again, in any order of its groups' ends", async () => {
    const rows = [
      attempt(0, 4, 1),
      attempt(1, 1, 1),
      attempt(0, 0, 0),
      attempt(0, 4, 0),
      attempt(0, 2, 1),
      attempt(0, 0, 1),
    ];
    expect(await trialsOf(rows)).toEqual({
      "g0#0": 0,
      "g0#1": 1,
      "g2#1": 2,
      "g4#0": 3,
      "g4#1": 4,
      // The first attempt of its only group is still being played.
      "g1#1": 1,
    });
  });

  test("numbers attempts of a gateway's run, which counts no groups, by their places", async () => {
    const rows = [1, 0].map((sampleIndex) => episodeRow({ taskIndex: 0, sampleIndex }));
    expect(await trialsOf(rows)).toEqual({ "shop/test/0#0": 0, "shop/test/0#1": 1 });
  });

  test("gives an attempt that counts no groups a number of its own beside a group that is counted", async () => {
    const rows = [
      episodeRow({ taskIndex: 0, sampleIndex: 0 }),
      episodeRow({ taskIndex: 0, sampleIndex: 1 }),
      { ...attempt(0, 0, 1), groupId: "shop/test/0~2" },
      { ...attempt(0, 0, 0), groupId: "shop/test/0~2" },
    ];
    expect(await trialsOf(rows)).toEqual({
      "shop/test/0#0": 0,
      "shop/test/0#1": 1,
      "g0#0": 2,
      "g0#1": 3,
    });
  });

  test("treats attempts of one group as one group if only some of them number it", async () => {
    const rows = [
      episodeRow({ taskIndex: 7, sampleIndex: 3, groupIndex: 7 }),
      episodeRow({ taskIndex: 7, sampleIndex: 1 }),
    ];
    expect(await trialsOf(rows)).toEqual({ "shop/test/7#3": 3, "shop/test/7#1": 1 });
  });

  test("distinguishes branches from trials", async () => {
    const forkedFrom = { rolloutId: "shop/test/0#0", turnIndex: 2 };
    const rows = [
      episodeRow({ taskIndex: 0, sampleIndex: 1, forkedFrom }),
      episodeRow({ taskIndex: 0, sampleIndex: 2 }),
    ];
    const isBranch = new Map([
      ["shop/test/0#1", { trial: 1, isBranch: true }],
      ["shop/test/0#2", { trial: 2 }],
    ]);
    // The line of the first attempt may be lost.
    expect(await numberTrials(runOf(rows))).toEqual(isBranch);
    const whole = [...rows, episodeRow({ taskIndex: 0, sampleIndex: 0 })];
    expect(await numberTrials(runOf(whole))).toEqual(
      new Map([...isBranch, ["shop/test/0#0", { trial: 0 }]]),
    );
  });

  test("refuses an attempt that is there twice", async () => {
    const rows = [attempt(0, 3, 1), { ...attempt(0, 3, 1), rolloutId: "other#1" }];
    await expect(numberTrials(runOf(rows))).rejects.toThrow(
      "Cannot number the attempts in runs/a: g3#1 and other#1 are both attempt 1 of group 3 at shop/test/0, " +
        "expected one; turnwright verify says what is wrong",
    );
  });
});

test("numberedEpisodes() omits episodes that ended later", async () => {
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
