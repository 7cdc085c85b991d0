import { expect, test } from "vitest";
import type { TreeTurn } from "../../episode/episode.ts";
import type { RowLineage } from "../../episode/row-lineage.ts";
import { originOf, originWords, rowPlaceWords } from "./row-origin.ts";
import { untrainedTurns } from "./untrained-turn.ts";

const about = { rowCount: 3, attemptTokenCount: 12 };

/** The second row trains nothing, so the third one is row 1 of those with trained tokens. */
const lineage: readonly (RowLineage | null)[] = [
  { ...about, role: "main", row: 0 },
  null,
  { ...about, role: "subagent", row: 1, from: { row: 0, turn: 1, edge: "subagent_call" } },
  { ...about, role: "main", row: 2, from: { row: 1, turn: 0, edge: "compaction" } },
];
const turnIndexes = [[0, 1], [], [2], [3]];

test("a row's origin is a turn of the episode, in a row of the episode", () => {
  expect([0, 1, 2, 3].map((row) => originOf(row, lineage, turnIndexes))).toEqual([
    { role: "main" },
    {},
    { role: "subagent", from: { row: 0, turnIndex: 1, edge: "subagent_call" } },
    { role: "main", from: { row: 2, turnIndex: 2, edge: "compaction" } },
  ]);
  // The row of the turn was not read.
  expect(originOf(3, lineage, turnIndexes.slice(0, 1))).toEqual({ role: "main" });
  expect(originOf(0, [], turnIndexes)).toEqual({});
});

test("origins and places are described in words", () => {
  const from = { row: 0, turnIndex: 3 } as const;
  expect(originWords({ ...from, edge: "subagent_call" })).toBe("called by turn 3 of row 0");
  expect(originWords({ ...from, edge: "compaction" })).toBe("after compaction by turn 3 of row 0");
  expect(originWords({ ...from, edge: "continuation" })).toBe("continues turn 3 of row 0");
  expect(originWords({ ...from, edge: "<b>" as "compaction" })).toBe("<b>: turn 3 of row 0");
  expect(rowPlaceWords({ segment: 2, trainedCount: 4, lineage: lineage[2]! })).toEqual({
    place: "row 2 (2 of 3)",
    role: "sub-agent",
    tokens: "4 of the attempt's 12 trained tokens (33.3 %)",
  });
});

test("turns that no row trains have their evidence and the trained turn before them", () => {
  const turn: TreeTurn = {
    promptTokenCount: 1,
    sampledTokenCount: 5,
    outputHash: "",
    isDelivered: true,
    model: "policy",
  };
  const found = untrainedTurns([
    { ...turn, cause: "first", turnIndex: 0 },
    { ...turn, parent: 0, role: "retry", rejected: "resumed-sibling" },
    { ...turn, parent: 0, turnIndex: 1 },
    { ...turn, parent: 1, isDelivered: false },
    {
      ...turn,
      cause: "new-conversation",
      role: "compaction",
      rejected: "client",
      from: { turn: 2, edge: "compaction_attempt" },
    },
    { ...turn, cause: "new-conversation", model: "other", from: { turn: 3, edge: "compaction" } },
  ]);
  const counted = { sampledTokenCount: 5 };
  expect(found).toEqual([
    {
      ...counted,
      node: 1,
      after: 0,
      status: "rejected",
      reason: "the same request was sampled again, and that reply was continued",
      role: "retry",
    },
    {
      ...counted,
      node: 3,
      after: 0,
      status: "undelivered",
      reason: "it never reached the client completely",
    },
    {
      ...counted,
      node: 4,
      after: 1,
      status: "rejected",
      reason: "the client marks it as a compaction, and its conversation continued without it",
      role: "compaction",
      link: "asked for a summary after turn 1",
    },
    {
      ...counted,
      node: 5,
      after: 0,
      status: "left-out",
      reason: "it was sampled for another model, or belongs to a row that is left out",
      link: "after compaction by an untrained turn (tree 3)",
    },
  ]);
});
