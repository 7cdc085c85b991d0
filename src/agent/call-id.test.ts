import { expect, test } from "vitest";
import { callId, chooseCallIds } from "./call-id.ts";

test("a turn's calls keep unique ids that the policy wrote", () => {
  expect(chooseCallIds(["functions.get:0", undefined, "abcDEF123"], 2)).toEqual([
    "functions.get:0",
    "t0002c001",
    "abcDEF123",
  ]);
  expect(chooseCallIds(["functions.get:0", "functions.get:0", "call 1"], 2)).toEqual([
    "functions.get:0",
    "t0002c001",
    "t0002c002",
  ]);
});

test("a generated id that the policy wrote is kept, and the next call gets another", () => {
  expect(chooseCallIds(["t0002c001", undefined, undefined], 2)).toEqual([
    "t0002c001",
    "t0002c004",
    "t0002c002",
  ]);
});

test.each([
  [1001, 3],
  [2, 10_000],
])("%i calls of turn %i have unique ids", (count, turnIndex) => {
  const written = Array.from({ length: count }, () => callId(turnIndex, count - 1));
  const ids = chooseCallIds(written, turnIndex);
  expect(new Set(ids).size).toBe(count);
  expect(chooseCallIds(new Array<undefined>(count).fill(undefined), turnIndex)).toEqual(
    Array.from({ length: count }, (_, index) => callId(turnIndex, index)),
  );
});
