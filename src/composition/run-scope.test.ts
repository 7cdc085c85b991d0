import { describe, expect, test } from "vitest";
import { createStorefront } from "../../environments/storefront/index.ts";
import { defaultSplit, findScopeWarning, toRunScope } from "./run-scope.ts";

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

test.each([
  [{ tasks: "all" }, 1_000, "plays all 1,000 tasks of train: --tasks 0-31 plays the first 32"],
  [{ tasks: "all" }, 999, undefined],
  [{ tasks: "all", epochs: { count: 2 } }, 1_000, undefined],
  [{ tasks: "0-999" }, 1_000, undefined],
])("a run of %j with %i tasks warns: %j", (config, count, warning) => {
  const taskIndexes = Array.from({ length: count }, (_, index) => index);
  expect(findScopeWarning(config, { split: "train", taskIndexes })).toBe(warning);
});
