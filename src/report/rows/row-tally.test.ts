import { describe, expect, test } from "vitest";
import { episodeRow } from "../../episode/episode-row.fixture.ts";
import type { TreeTurn } from "../../episode/episode.ts";
import { EvaluationTally } from "../evaluation-tally.ts";
import { renderMarkdownReport } from "../markdown-report.ts";
import type { CountedRow } from "./counted-row.ts";
import { RowTally } from "./row-tally.ts";

const turn: TreeTurn = {
  promptTokenCount: 10,
  sampledTokenCount: 4,
  outputHash: "",
  isDelivered: true,
  model: "policy",
};

/** A compaction and a sub-agent, and three turns that no row trains. */
const tree: readonly TreeTurn[] = [
  { ...turn, cause: "first", turnIndex: 0, role: "main" },
  { ...turn, parent: 0, role: "compaction", rejected: "later-summary", sampledTokenCount: 9 },
  {
    ...turn,
    parent: 0,
    turnIndex: 1,
    role: "compaction",
    from: { turn: 0, edge: "compaction_attempt" },
  },
  {
    ...turn,
    cause: "moved-turn",
    turnIndex: 2,
    role: "main",
    from: { turn: 2, edge: "compaction" },
  },
  {
    ...turn,
    cause: "new-conversation",
    turnIndex: 4,
    role: "subagent",
    from: { turn: 3, edge: "subagent_call" },
  },
  { ...turn, parent: 4, isDelivered: false },
  {
    ...turn,
    parent: 3,
    turnIndex: 3,
    role: "main",
    from: { turn: 4, edge: "subagent_return" },
  },
  { ...turn, parent: 6, model: "other" },
];

const several: readonly CountedRow[] = [
  { turnCount: 2, trainedTokenCount: 8, lineage: { role: "main" } },
  {
    turnCount: 2,
    trainedTokenCount: 8,
    lineage: { role: "main", from: { row: 0, turn: 1, edge: "compaction" } },
  },
  {
    turnCount: 1,
    trainedTokenCount: 4,
    lineage: { role: "subagent", from: { row: 1, turn: 0, edge: "subagent_call" } },
  },
];

const only: readonly CountedRow[] = [{ turnCount: 1, trainedTokenCount: 20 }];

const rewritten: readonly CountedRow[] = [
  { turnCount: 1, trainedTokenCount: 3, lineage: { role: "main" } },
  {
    turnCount: 1,
    trainedTokenCount: 7,
    lineage: { role: "main", from: { row: 0, turn: 0, edge: "continuation" } },
  },
];

describe("RowTally", () => {
  test("counts rows by role, and each attempt once", () => {
    const tally = new RowTally();
    tally.add({ reward: 1, tree }, several);
    tally.add({ reward: 0 }, only);
    tally.add({}, rewritten);
    tally.add({ tree: [{ ...turn, cause: "first", isDelivered: false }] }, []);
    expect(tally.evaluation()).toEqual({
      attemptCount: 3,
      severalRowsCount: 2,
      rowCount: 6,
      trainedTokenCount: 50,
      rowsPerAttempt: { mean: 2, max: 3 },
      trainedTokensPerAttempt: { mean: 50 / 3, max: 20 },
      byRole: {
        main: {
          rowCount: 5,
          turnCount: 7,
          trainedTokenCount: 46,
          trainedTokenShare: 0.92,
          attemptCount: 3,
          averageReward: 0.5,
        },
        subagent: {
          rowCount: 1,
          turnCount: 1,
          trainedTokenCount: 4,
          trainedTokenShare: 0.08,
          attemptCount: 1,
          averageReward: 1,
        },
      },
      edges: {
        continuation: 1,
        compaction_attempt: 1,
        compaction: 1,
        subagent_call: 1,
        subagent_return: 1,
      },
      untrained: {
        turnCount: 4,
        sampledTokenCount: 21,
        rejected: { "later-summary": 1 },
        undelivered: 2,
        other: 1,
      },
    });
  });

  test("takes the role of an only row from its first trained turn", () => {
    const tally = new RowTally();
    tally.add({ tree: [{ ...turn, cause: "first", turnIndex: 0, role: "title" }] }, only);
    tally.add({ tree: [{ ...turn, cause: "first", turnIndex: 0 }] }, only);
    tally.add({}, rewritten);
    const { byRole } = tally.evaluation()!;
    expect(Object.entries(byRole).map(([role, { rowCount }]) => [role, rowCount])).toEqual([
      ["main", 2],
      ["title", 1],
      ["unknown", 1],
    ]);
    expect(byRole.main).not.toHaveProperty("averageReward");
  });

  test("gives nothing if no attempt has several rows", () => {
    const tally = new RowTally();
    tally.add({ reward: 1, tree }, only);
    tally.add({ reward: 1 }, []);
    expect(tally.evaluation()).toBeUndefined();
  });
});

test("an attempt with several rows counts once in every figure of a report", () => {
  const plan = {
    environment: "shop",
    split: "test",
    trialCount: 2,
    tasks: [{ taskId: "shop/test/0", taskIndex: 0 }],
  };
  const attempt = (sampleIndex: number, reward: number) => ({
    row: episodeRow({ taskIndex: 0, sampleIndex, reward, tree }),
    trial: sampleIndex,
  });
  const evaluate = (first: readonly CountedRow[]) => {
    const tally = new EvaluationTally(plan);
    tally.add(attempt(0, 1), first);
    tally.add(attempt(1, 0), only);
    return tally.evaluation();
  };
  const { rows, ...figures } = evaluate(several);
  expect(figures).toEqual(evaluate(only));
  expect(figures.averageReward?.value).toBe(0.5);
  expect(figures.passHatK["1"]?.value).toBe(0.5);
  expect(rows?.attemptCount).toBe(2);
  const report = renderMarkdownReport(evaluate(several), []);
  const [, section] = /^## Rows\n\n([^]*?)\n\n## /m.exec(report)!;
  expect(section!.split("\n\n").slice(1).join("\n\n")).toBe(`|  |  |
| --- | --- |
| attempts with several rows | 1 of 2 |
| rows | 4 (2.0 an attempt, at most 3) |
| trained tokens | 40 (20.0 an attempt, at most 20) |
| links | compaction_attempt ×2, compaction ×2, subagent_call ×2, subagent_return ×2 |
| sampled, not trained | 6 turns with 34 tokens: rejected (later-summary) ×2, undelivered ×2, other model or left-out row ×2 |

| role | rows | turns | trained tokens | of all | attempts | mean reward |
| --- | --- | --- | --- | --- | --- | --- |
| main | 3 | 5 | 36 | 90.0 % | 2 | 0.500 |
| sub-agent | 1 | 1 | 4 | 10.0 % | 1 | 1.000 |`);
  expect(renderMarkdownReport(evaluate(only), [])).not.toContain("## Rows");
});
