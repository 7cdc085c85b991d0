import { describe, expect, test } from "vitest";
import { absolute, add, multiply, negate, subtract } from "./numbers/arithmetic.ts";
import { contains } from "./contains.ts";
import { countOf } from "./count.ts";
import { getItem } from "./get-item.ts";
import { iterate, lengthOf } from "./iterate.ts";
import { lessThan } from "./less-than.ts";
import type { MutableDict } from "./mutable-value.ts";
import { setItem } from "./set-item.ts";
import type { PyValue } from "./value.ts";

const dict = new Map<string, PyValue>([
  ["10", 1n],
  ["__proto__", 2n],
]);

describe("getItem()", () => {
  test("reads dictionaries, lists and strings", () => {
    expect(getItem(dict, "__proto__")).toBe(2n);
    expect(getItem(["a", "b"], -1n)).toBe("b");
    expect(getItem(["a", "b"], true)).toBe("b");
    expect(getItem("a\u{1F600}", 1n)).toBe("\u{1F600}");
  });

  const failures: [PyValue, PyValue, string, string][] = [
    [dict, "it's", "KeyError", '"it\'s"'],
    [dict, 10n, "KeyError", "10"],
    [dict, null, "KeyError", "None"],
    [dict, [], "TypeError", "unhashable type: 'list'"],
    [[1n], 1n, "IndexError", "list index out of range"],
    [[1n], "a", "TypeError", "list indices must be integers or slices, not str"],
    ["a", "a", "TypeError", "string indices must be integers, not 'str'"],
    ["a", -2n, "IndexError", "string index out of range"],
    [null, "a", "TypeError", "'NoneType' object is not subscriptable"],
  ];
  test.each(failures)("of %s by %s fails as Python does", (container, key, exception, message) => {
    expect(() => getItem(container, key)).toThrow(expect.objectContaining({ exception, message }));
  });
});

describe("setItem()", () => {
  test("sets a dictionary's member and fails on any other object as Python does", () => {
    const target: MutableDict = new Map();
    setItem(target, "__proto__", 1n);
    expect([...target]).toEqual([["__proto__", 1n]]);
    expect(() => setItem([], "a", 1n)).toThrow("list indices must be integers or slices, not str");
    expect(() => setItem("a", "a", 1n)).toThrow("'str' object does not support item assignment");
    expect(() => setItem(null, "a", 1n)).toThrow(
      "'NoneType' object does not support item assignment",
    );
  });
});

describe("contains()", () => {
  test("searches keys, items and substrings", () => {
    expect(contains(dict, "10")).toBe(true);
    expect(contains(dict, 10n)).toBe(false);
    expect(contains([1n, Number.NaN], true)).toBe(true);
    expect(contains([Number.NaN], Number.NaN)).toBe(true);
    expect(contains("gift_card_1", "gift_card")).toBe(true);
  });

  test("fails as Python does", () => {
    expect(() => contains(dict, dict)).toThrow("unhashable type: 'dict'");
    expect(() => contains("a", 1n)).toThrow(
      "'in <string>' requires string as left operand, not int",
    );
    expect(() => contains(1n, 1n)).toThrow("argument of type 'int' is not iterable");
  });
});

describe("iterate() and lengthOf()", () => {
  test("take lists, dictionaries and strings, the latter by code points", () => {
    expect(iterate(dict)).toEqual(["10", "__proto__"]);
    expect(iterate("a\u{1F600}\ud83d")).toEqual(["a", "\u{1F600}", "\ud83d"]);
    expect([lengthOf(dict), lengthOf([1n]), lengthOf("a\u{1F600}")]).toEqual([2, 1, 2]);
  });

  test("fail as Python does", () => {
    expect(() => iterate(true)).toThrow("'bool' object is not iterable");
    expect(() => lengthOf(1.5)).toThrow("object of type 'float' has no len()");
  });
});

describe("countOf()", () => {
  test("counts equal items and substrings", () => {
    expect(countOf([1n, 1, true, "1", Number.NaN], 1n)).toBe(3);
    expect(countOf(["a", Number.NaN, Number.NaN], Number.NaN)).toBe(2);
    expect(countOf("aaa", "aa")).toBe(1);
    expect(countOf("a\u{1F600}", "")).toBe(3);
  });

  test("fails as Python does", () => {
    expect(() => countOf(dict, "a")).toThrow("'dict' object has no attribute 'count'");
    expect(() => countOf("a", 1n)).toThrow("must be str, not int");
  });
});

describe("lessThan()", () => {
  test("orders numbers, strings and lists", () => {
    expect(lessThan(9007199254740992, 9007199254740993n)).toBe(true);
    expect(lessThan(false, 0.5)).toBe(true);
    expect(lessThan(1n, Number.NaN)).toBe(false);
    expect(lessThan("\uFFFD", "\u{1F600}")).toBe(true);
    expect(lessThan([1n, "a"], [1, "b"])).toBe(true);
    expect(lessThan([1n], [1n])).toBe(false);
  });

  test("fails as Python does", () => {
    expect(() => lessThan(1n, "1")).toThrow(
      "'<' not supported between instances of 'int' and 'str'",
    );
    expect(() => lessThan(dict, dict)).toThrow(
      "'<' not supported between instances of 'dict' and 'dict'",
    );
  });
});

describe("arithmetic", () => {
  test("keeps integers and returns floats if one operand is a float", () => {
    expect(add(1n, true)).toBe(2n);
    expect(add(1n, 0.5)).toBe(1.5);
    expect(subtract(2n, 2)).toBe(0);
    expect(multiply(50n, "ab")).toBe("ab".repeat(50));
    expect(multiply(2n, [1n, [2n]])).toEqual([1n, [2n], 1n, [2n]]);
    expect(multiply(2n, 1.5)).toBe(3);
    expect(negate(true)).toBe(-1n);
    expect(Object.is(negate(0), -0)).toBe(true);
    expect([absolute(-2n), absolute(-0.5)]).toEqual([2n, 0.5]);
  });

  test("fails as Python does", () => {
    expect(() => add(1n, "a", "+=")).toThrow("unsupported operand type(s) for +=: 'int' and 'str'");
    expect(() => multiply(50n, null)).toThrow(
      "unsupported operand type(s) for *: 'int' and 'NoneType'",
    );
    expect(() => multiply(0.5, "a")).toThrow("can't multiply sequence by non-int of type 'float'");
    expect(() => negate("a")).toThrow("bad operand type for unary -: 'str'");
    expect(() => add(10n ** 400n, 0.5)).toThrow("int too large to convert to float");
  });
});
