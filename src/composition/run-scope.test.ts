import { describe, expect, test } from "vitest";
import { createStorefront } from "../../environments/storefront/index.ts";
import { defaultSplit, toRunScope } from "./run-scope.ts";

const scope = { tasks: "0-1", sampleCount: 2, seed: 3 };

describe("the split that is played if none is named", () => {
  test.each([
    [{ test: 2, train: 5 }, "train"],
    [{ eval: 4, test: 2 }, "test"],
    [{ eval: 4, dev: 2 }, "eval"],
    [{}, "train"],
  ])("of %j is %s", (splits, split) => {
    expect(defaultSplit({ splits })).toBe(split);
  });
});

test("a configuration without a split plays the training tasks", () => {
  const played = { split: "train", taskIndexes: [0, 1], sampleCount: 2, seed: 3 };
  expect(toRunScope(scope, createStorefront())).toEqual(played);
});

test("a split that the environment lacks is refused", () => {
  expect(() => toRunScope({ ...scope, split: "tran" }, createStorefront())).toThrow(
    'Cannot find split "tran" of storefront: did you mean train? (expected one of train, test)',
  );
});
