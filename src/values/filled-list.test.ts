import { expect, test } from "vitest";
import { listsOf } from "./filled-list.ts";

test.each([0, 1, 5, 16_384, 16_385])("a list of %d values is its taker's own", (length) => {
  const zeros = listsOf(0, [0.5]);
  const first = zeros(length);
  expect(first).toEqual(new Array<number>(length).fill(0));
  first.fill(0.25);
  first.push(7);
  expect(zeros(length)).toEqual(new Array<number>(length).fill(0));
});

test("texts are values as well", () => {
  expect(listsOf("")(3)).toEqual(["", "", ""]);
});
