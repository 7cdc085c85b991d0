import { describe, expect, test } from "vitest";
import { episodeRow } from "../../episode/episode-row.fixture.ts";
import type { StoredRun } from "../../report/read-run.ts";
import { listEpisodes, type ListChoice } from "./list-episodes.ts";

function turns(turnCount: number) {
  return { ...episodeRow({ taskIndex: 0, sampleIndex: 0 }).counts, turnCount };
}

const rows = [
  { taskIndex: 0, sampleIndex: 0, reward: 1, counts: turns(3) },
  { taskIndex: 0, sampleIndex: 1, reward: 0, counts: turns(9) },
  { taskIndex: 2, sampleIndex: 0, reward: 0.5, counts: turns(5), success: true },
  {
    taskIndex: 2,
    sampleIndex: 1,
    counts: turns(1),
    outcome: "failed",
    stopReason: "failure",
    failure: { party: "user", code: "user/timeout", message: "no answer" },
  },
] as const;

const run = {
  dir: "runs/a",
  async *rows() {
    for (const row of rows) yield { ...episodeRow(row), sampleHashes: ["h"] };
  },
} as unknown as StoredRun;

/** Task and attempt of each listed episode. */
async function list(choice: ListChoice): Promise<readonly string[]> {
  const places: string[] = [];
  for await (const line of listEpisodes(run, choice)) places.push(/(\d+#\d+) {2}/.exec(line)![1]!);
  return places;
}

describe("a list of episodes", () => {
  test.each<[ListChoice, readonly string[]]>([
    [{}, ["0#0", "0#1", "2#0", "2#1"]],
    [{ failed: true }, ["0#1", "2#1"]],
    [{ filter: "task=2" }, ["2#0", "2#1"]],
    [{ filter: "reward<1 turns>4" }, ["0#1", "2#0"]],
    [{ filter: "outcome:failed" }, ["2#1"]],
    [{ filter: "user/timeout" }, ["2#1"]],
    [{ filter: "rows=1 reward=none" }, ["2#1"]],
    [{ sort: "-turns" }, ["0#1", "2#0", "0#0", "2#1"]],
    [{ sort: "reward", failed: true }, ["0#1", "2#1"]],
    [{ filter: "task=7" }, []],
  ])("of %j is %j", async (choice, expected) => {
    expect(await list(choice)).toEqual(expected);
  });

  test.each<[ListChoice, string]>([
    [{ filter: "versions>3" }, "Cannot use --filter versions>3: there is no “versions”; the"],
    [{ filter: "turns>many" }, "Cannot use --filter turns>many: “turns>many” compares with no"],
    [{ sort: "-speed" }, "Cannot use --sort -speed: there is no “speed”; the fields are order,"],
  ])("refuses %j", async (choice, complaint) => {
    await expect(list(choice)).rejects.toThrow(complaint);
  });
});
