import { expect, test } from "vitest";
import { freezeDict } from "./frozen-value.ts";
import { copyDict } from "./mutable-value.ts";
import type { PyDict, PyValue } from "./value.ts";
import { isPyDict } from "./value.ts";

const source: PyDict = new Map<string, PyValue>([["a", [new Map([["b", 1n]])]]]);

test("freezeDict() makes a deep copy that refuses every change", () => {
  const frozen = freezeDict(source);
  expect(copyDict(frozen)).toEqual(source);
  expect(isPyDict(frozen)).toBe(true);
  const open = frozen as Map<string, PyValue>;
  expect(() => open.set("a", 1n)).toThrow('Cannot set "a" of shared data: it is frozen');
  expect(() => open.delete("a")).toThrow('Cannot delete "a" of shared data: it is frozen');
  expect(() => open.clear()).toThrow("Cannot clear shared data: it is frozen");
  const list = frozen.get("a") as PyValue[];
  expect(() => list.push(1n)).toThrow(TypeError);
  expect(() => (list[0] as Map<string, PyValue>).set("b", 2n)).toThrow("it is frozen");
});

test("copyDict() makes a deep copy that may change, of frozen data too", () => {
  const copy = copyDict(freezeDict(source));
  (copy.get("a") as unknown[]).push(2n);
  copy.delete("a");
  expect(source).toEqual(new Map([["a", [new Map([["b", 1n]])]]]));
  expect(copy.size).toBe(0);
});
