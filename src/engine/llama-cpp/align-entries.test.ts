import { describe, expect, test } from "vitest";
import { alignEntries } from "./align-entries.ts";

describe("`alignEntries()`", () => {
  test.each([
    [
      [5, 6, 7],
      [5, 6, 7],
      [0, 1, 2],
    ],
    [[], [], []],
    [[5, 6, 7], [], [undefined, undefined, undefined]],
    [
      [5, 6, 7],
      [5, 7],
      [0, undefined, 1],
    ],
    [
      [5, 5, 5],
      [5, 5, 5],
      [0, 1, 2],
    ],
  ])("aligns %j with the entries %j as %j", (ids, entryIds, places) => {
    expect(alignEntries(ids, entryIds)).toEqual(places);
  });

  test("assigns no entry that could belong to either of two tokens", () => {
    expect(alignEntries([1, 8, 8, 9], [1, 8, 9])).toEqual([0, undefined, undefined, 2]);
  });

  test("two characters in bytes, if the first one's last byte also occurs in the second", () => {
    const ids = [240, 159, 152, 152, 240, 159, 152, 128];
    const places = alignEntries(ids, [152, 128]);
    expect(places?.[7]).toBe(1);
    expect(places?.slice(0, 7).every((place) => place === undefined)).toBe(true);
  });

  test.each([
    [[5, 6], [7]],
    [
      [5, 6],
      [6, 5],
    ],
    [[5], [5, 5]],
  ])("is undefined for %j and entries %j", (ids, entryIds) => {
    expect(alignEntries(ids, entryIds)).toBeUndefined();
  });

  test("takes time in proportion to its input", () => {
    const ids = Array.from({ length: 200_000 }, (_, index) => (index * 7_919) % 1_000);
    const places = alignEntries(ids, ids.slice(1));
    expect(places?.filter((place) => place !== undefined).length).toBeGreaterThan(0);
  });
});
