import { expect, test } from "vitest";
import { countOf } from "./count-of.ts";

test.each([
  [0, "0 rows"],
  [1, "1 row"],
  [2_000, "2,000 rows"],
])("%i is written as %s", (count, text) => {
  expect(countOf(count, "row")).toBe(text);
});
