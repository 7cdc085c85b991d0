import path from "node:path";
import { describe, expect, test } from "vitest";
import { derivedPart } from "./exported-row.ts";
import { checkSpecialTokens, readSpecialTokens, type SpecialTokens } from "./special-tokens.ts";

const special: SpecialTokens = {
  vocabularySize: 100,
  controls: new Map([
    [1, "<s>"],
    [90, "<|im_start|>"],
    [91, "<|im_end|>"],
  ]),
  stops: new Set([91]),
  begin: 1,
};

function check(
  ids: readonly number[],
  mask: readonly number[],
  prompt: readonly number[] = [1, 90, 5],
) {
  const row = {
    prompt: derivedPart(prompt, "prompt"),
    ids: derivedPart(ids, "ids"),
    mask: derivedPart(mask, "mask"),
    logprobs: derivedPart([], "logprobs"),
  };
  return checkSpecialTokens(row, special).map(({ rule, detail }) => `${rule}: ${detail}`);
}

describe("checkSpecialTokens()", () => {
  test("accepts turns that end with a stop, one that was cut off, and one whose stop the template moved", () => {
    expect(check([10, 91, 90, 7, 12, 91], [1, 1, 0, 0, 1, 1])).toEqual([]);
    expect(check([10, 91, 90, 7, 12, 13], [1, 1, 0, 0, 1, 1])).toEqual([]);
    expect(check([10, 7, 90, 7, 12, 91], [1, 0, 0, 0, 1, 1])).toEqual([]);
    expect(check([10, 91, 90, 7], [1, 1, 0, 0])).toEqual([]);
  });

  test.each([
    [[10, 100], [1, 1], "ids at 1 is 100, and the vocabulary has 100"],
    [
      [10, 91, 12],
      [1, 1, 1],
      "ids at 1 is 91 (<|im_end|>), which ends a turn, and sampled tokens follow",
    ],
    [
      [10, 11, 7, 12],
      [1, 1, 0, 1],
      "ids at 1 is 11, and no control token stands between it and ids at 3, the next turn",
    ],
    [
      [10, 91, 1, 7, 12],
      [1, 1, 0, 0, 1],
      "ids at 2 is 1 (<s>), with which a text begins, after the prompt",
    ],
  ])("%j with the mask %j", (ids, mask, detail) => {
    expect(check(ids, mask)).toEqual([`special-tokens: ${detail}`]);
  });

  test("looks at the prompt's ids too", () => {
    expect(check([10, 91], [1, 1], [1, 400])).toEqual([
      "special-tokens: prompt at 1 is 400, and the vocabulary has 100",
    ]);
  });

  test("reads a model folder", async () => {
    const found = await readSpecialTokens(path.resolve("models/storefront-2m"));
    expect([...found.stops]).toEqual([2939, 2937]);
    expect(found.controls.get(2938)).toBe("<|im_start|>");
    expect(found.begin).toBe(undefined);
  });
});
