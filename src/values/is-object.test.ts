import { expect, test } from "vitest";
import { isObject } from "./is-object.ts";

test.each<[value: unknown, expected: boolean]>([
  [{}, true],
  [Object.create(null), true],
  [[], false],
  [null, false],
  [undefined, false],
  ["text", false],
  [() => {}, false],
])("%j is an object: %s", (value, expected) => {
  expect(isObject(value)).toBe(expected);
});
