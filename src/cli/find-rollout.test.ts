import { describe, expect, test } from "vitest";
import { findRecorded } from "./find-rollout.ts";

const forks = ["shop/test/0#1@2.77#0", "shop/test/0#1@2.77#1"];

describe("findRecorded()", () => {
  test.each([
    ["shop/test/0#1@2.77#1", forks[1]],
    ["0#1@2.77#1", forks[1]],
    ["2.77#1", forks[1]],
    ["#0", forks[0]],
  ])("finds a branch by %s", (wanted, found) => {
    expect(findRecorded(forks, wanted, "forks")).toBe(found);
  });

  test("finds nothing by a part of a number, and lists the existing ones", () => {
    expect(() => findRecorded(["shop/test/17#0"], "7#0", "run")).toThrow(
      "Cannot find episode 7#0 of run: there is no recording of it; there are shop/test/17#0",
    );
    expect(() => findRecorded(forks, "7#1", "forks")).toThrow("there is no recording of it");
    const many = Array.from({ length: 9 }, (_, index) => `shop/test/${index}#0`);
    expect(() => findRecorded(many, "9#0", "run")).toThrow(
      "there are shop/test/0#0, shop/test/1#0, shop/test/2#0, shop/test/3#0 and 5 more",
    );
  });

  test("reports a folder without recordings", () => {
    expect(() => findRecorded([], "7#0", "run")).toThrow(
      "Cannot find episode 7#0 of run: nothing is recorded there (see rollout --record)",
    );
  });
});
