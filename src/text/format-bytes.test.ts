import { expect, test } from "vitest";
import { formatBytes } from "./format-bytes.ts";

test("formats sizes", () => {
  const sizes = [0, 999, 1000, 999_949, 999_950, 3_100_000, 999_950_000];
  expect(sizes.map(formatBytes)).toEqual([
    "0 B",
    "999 B",
    "1.0 kB",
    "999.9 kB",
    "1.0 MB",
    "3.1 MB",
    "1.0 GB",
  ]);
});
