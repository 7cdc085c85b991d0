import { expect, test } from "vitest";
import { isPrintable } from "./is-printable.ts";

test("isPrintable() agrees with CPython 3.11 on how many code points are not printable", () => {
  let count = 0;
  for (let codePoint = 0; codePoint <= 0x10ffff; codePoint++) {
    if (!isPrintable(codePoint)) count += 1;
  }
  expect(count).toBe(969596);
});

test.each([
  [0x1f, false],
  [0x20, true],
  [0x7e, true],
  [0x7f, false],
  [0xa0, false],
  [0xa1, true],
  [0xad, false],
  [0x378, false],
  [0x3000, false],
  [0xd83d, false],
  [0xe000, false],
  [0x1f600, true],
  [0x1fae8, false],
  [0x10ffff, false],
])("isPrintable(%i) is %s", (codePoint, expected) => {
  expect(isPrintable(codePoint)).toBe(expected);
});
