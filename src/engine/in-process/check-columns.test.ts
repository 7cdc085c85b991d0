import { expect, test } from "vitest";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import { RolloutError } from "../../errors.ts";
import type { SamplingParameters } from "../engine.ts";
import { checkColumns, type ColumnLimits } from "./check-columns.ts";

const routedExperts = { layerCount: 4, perToken: 2, expertCount: 8 };
const limits: ColumnLimits = {
  names: ["routedExperts", "keptTokens", "topLogprobs"],
  routedExperts,
};

function check(
  specs: ColumnSpecs,
  {
    sampling = {},
    knownRows = 0,
    given = limits,
  }: { sampling?: SamplingParameters; knownRows?: number; given?: ColumnLimits | undefined } = {},
): string | undefined {
  const request = {
    promptIds: [1, 2, 3],
    sampling,
    maxNewTokens: 1,
    stopTokenIds: [],
    columns: { specs, knownRows },
    requestId: "r",
    sessionId: "s",
  };
  try {
    checkColumns(request, given);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(RolloutError);
    expect((error as RolloutError).code).toBe("engine/bad-request");
    return (error as RolloutError).message;
  }
}

test("accepts the engine's columns, and a number of known rows up to the prompt's end", () => {
  expect(check({ routedExperts, topLogprobs: { count: 100 } })).toBeUndefined();
  expect(check({ routedExperts }, { knownRows: 3 })).toBeUndefined();
  expect(check({ keptTokens: { maxCount: 9 } }, { sampling: { topK: 9 } })).toBeUndefined();
  expect(check({ keptTokens: { maxCount: 9 } }, { sampling: { temperature: 0 } })).toBeUndefined();
});

test("refuses columns that the engine does not return", () => {
  expect(check({ indexerTopK: { layerCount: 1, perToken: 2 } })).toBe(
    "Cannot sample: columns has indexerTopK, expected at most routedExperts, keptTokens, " +
      "topLogprobs: this engine or its model has no other",
  );
  expect(check({ topLogprobs: { count: 1 } }, { given: { names: [] } })).toBe(
    "Cannot sample: columns has topLogprobs, expected none: this engine or its model has no other",
  );
});

test("refuses routes of another shape than the model's", () => {
  for (const [change, text] of [
    [{ layerCount: 3 }, "3 layers with 2 of 8 experts a token"],
    [{ perToken: 4 }, "4 layers with 4 of 8 experts a token"],
    [{ expertCount: 16 }, "4 layers with 2 of 16 experts a token"],
  ] as const) {
    expect(check({ routedExperts: { ...routedExperts, ...change } })).toBe(
      `Cannot sample: columns.routedExperts has ${text}, ` +
        "expected 4 layers with 2 of 8 experts a token, as the model has",
    );
  }
});

test("refuses a number of known rows that is no number of the prompt's rows", () => {
  for (const knownRows of [-1, 0.5, 4]) {
    expect(check({ routedExperts }, { knownRows })).toBe(
      `Cannot sample: columns.knownRows is ${knownRows}, expected a whole number from 0 to the 3 prompt ids`,
    );
  }
});

test("refuses kept tokens without a top-k that limits them", () => {
  for (const topK of [-1, 10]) {
    expect(check({ keptTokens: { maxCount: 9 } }, { sampling: { topK } })).toBe(
      `Cannot sample: topK is ${topK} with the column keptTokens of at most 9 ids, expected 1 to 9`,
    );
  }
});
