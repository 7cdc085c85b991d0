import { expect, test } from "vitest";
import { GroupPriorities } from "./group-priority.ts";

test("attempts of a group go first once a quarter of it is left", () => {
  const groups = new GroupPriorities();
  const ids = Array.from({ length: 8 }, (_, index) => `a${index}`);
  for (const id of ids) expect(groups.add("g", { id, left: 8 })).toBe(2);
  groups.begun("g", "a6");
  for (const id of ids.slice(0, 5)) expect(groups.ended("g", id)).toEqual([]);
  // The seventh is played already.
  expect(groups.ended("g", "a5")).toEqual(["a7"]);
  expect(groups.add("g", { id: "again", left: 2 })).toBe(1);
  expect(groups.ended("g", "a6")).toEqual([]);
  groups.ended("g", "a7");
  expect(groups.size).toBe(0);
});

test("groups of one wait for their turn, and the last of two does not", () => {
  const groups = new GroupPriorities();
  expect(groups.add("one", { id: "a", left: 1 })).toBe(2);
  expect(groups.add("two", { id: "b", left: 2 })).toBe(2);
  expect(groups.add("two", { id: "c", left: 2 })).toBe(2);
  expect(groups.ended("two", "b")).toEqual(["c"]);
});
