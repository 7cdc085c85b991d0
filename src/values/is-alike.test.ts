import { expect, test } from "vitest";
import { isAlike } from "./is-alike.ts";

const made = (watts: number) => ({
  lit: new Map([["kitchen", [{ watts }]]]),
  rooms: new Set(["kitchen"]),
  since: new Date(watts),
  isFine: (count: number) => count > 0,
});

test("values made by the same code are alike, including functions", () => {
  expect(isAlike(made(40), made(40))).toBe(true);
  expect(isAlike([Number.NaN, undefined, null, "a"], [Number.NaN, undefined, null, "a"])).toBe(
    true,
  );
});

test.each([
  [made(40), made(60)],
  [made(40), { ...made(40), rooms: new Set(["hall"]) }],
  [made(40), { ...made(40), since: new Date(60) }],
  [made(40), { ...made(40), isFine: () => true }],
  [made(40), { ...made(40), more: undefined }],
  [new Map([["a", 1]]), new Map([["a", 2]])],
  [{ a: 0 }, { a: -0 }],
  [[1, 2], [1]],
  [{}, []],
  [{}, null],
  [1, "1"],
])("distinguishes %j from %j", (one, other) => {
  expect(isAlike(one, other)).toBe(false);
  expect(isAlike(other, one)).toBe(false);
});

test("terminates for a circular value", () => {
  const ring = (name: string) => {
    const list: unknown[] = [name];
    list.push(list);
    return list;
  };
  expect(isAlike(ring("a"), ring("a"))).toBe(true);
  expect(isAlike(ring("a"), ring("b"))).toBe(false);
});

test("compares the members of instances of foreign classes, and of Sets", () => {
  class Check {
    readonly test: (text: string) => boolean;
    readonly limit: number;
    constructor(limit: number) {
      this.limit = limit;
      this.test = (text) => text.length > 3;
    }
  }
  const made = (limit: number) => ({ check: new Check(limit), rules: new Set([() => true]) });
  expect(isAlike(made(1), made(1))).toBe(true);
  expect(isAlike(made(1), made(2))).toBe(false);
});
