import { expect, test } from "vitest";
import type { Segment } from "../../trajectory/segment.ts";
import { countRows } from "./counted-row.ts";

/** A segment whose turns sample these numbers of ids. */
function segment(firstTurn: number, ...lengths: readonly number[]): Segment {
  const turn = { start: 10, finish: "stop", promptHash: "", outputHash: "" } as const;
  const turns = lengths.map((length, index) => ({
    ...turn,
    turnIndex: firstTurn + index,
    end: 10 + length,
  }));
  const lists = { tokenIds: [], lossMask: [], logprobs: [], policyVersions: [] };
  return { ...lists, promptLength: 10, spans: [], turns };
}

test("countRows() counts the rows of an episode that have trained tokens", () => {
  const segments = [segment(0, 4, 3), segment(2), segment(2, 5)];
  expect(countRows({ segments })).toEqual([
    { turnCount: 2, trainedTokenCount: 7, lineage: expect.objectContaining({ role: "main" }) },
    {
      turnCount: 1,
      trainedTokenCount: 5,
      lineage: expect.objectContaining({ from: { row: 0, turn: 1, edge: "continuation" } }),
    },
  ]);
  expect(countRows({ segments: segments.slice(0, 2) })).toEqual([
    { turnCount: 2, trainedTokenCount: 7 },
  ]);
  expect(countRows({ segments: [] })).toEqual([]);
});
