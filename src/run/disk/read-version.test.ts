import { expect, test } from "vitest";
import { readVersion } from "./read-version.ts";

test.each([
  ["0", 0],
  ["-3", -3],
  ["1732345678901234", 1_732_345_678_901_234],
  [String(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER],
])("reads the version %s, as it can be announced", (name, version) => {
  expect(readVersion(name)).toBe(version);
});

test.each(["", "default", "1e3", "0x10", "1.5", "9007199254740993"])(
  "%s is not a version that can be announced",
  (name) => {
    expect(readVersion(name)).toBeUndefined();
  },
);
