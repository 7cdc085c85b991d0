import { expect, test } from "vitest";
import { verificationText, type Verification } from "./verification-text.ts";

const whole = {
  run: "runs/a",
  samples: 1_200,
  episodes: 1_100,
  planned: 1_200,
  isFinished: false,
  missingCount: 100,
  missing: ["shop/train/3#0", "shop/train/3#1"],
  recorded: 1,
  teachers: { base: 20 },
  violations: [],
} satisfies Verification;

test("a run is summed up for people", () => {
  expect(verificationText(whole)).toBe(
    "runs/a\n" +
      "  samples   1,200\n" +
      "  episodes  1,100 of 1,200 planned, not finished\n" +
      "  missing   100 episodes: shop/train/3#0, shop/train/3#1, …\n" +
      "  recorded  1 episode\n" +
      "  teacher   base: 20 rows scored\n" +
      "  result    nothing is violated\n",
  );
});

test("violations come with their places, the first ten of them", () => {
  const violations = Array.from({ length: 12 }, (_, index) => ({
    file: "samples.jsonl",
    line: index + 1,
    rule: "row-changed",
    detail: "the row has another \u001b[2Jhash",
  }));
  const lines = verificationText({ ...whole, violations }).split("\n");
  expect(lines.find((line) => line.startsWith("  result"))).toBe("  result    12 violations");
  const shown = lines.slice(-13).filter((line) => line.includes("row-changed"));
  expect(shown).toHaveLength(10);
  expect(shown[9]).toBe("  samples.jsonl line 10: row-changed: the row has another \\x1b[2Jhash");
  expect(lines.at(-2)).toBe("  … and 2 others (--json shows all)");
});

test("an export is summed up with its note", () => {
  const text = verificationText({
    file: "rows.jsonl",
    as: "verl",
    records: 1,
    note: "only this file was checked",
    violations: [{ line: 1, rule: "mask", detail: "too short" }],
  });
  expect(text).toBe(
    "rows.jsonl\n" +
      "  records  1 for verl\n" +
      "  note     only this file was checked\n" +
      "  result   1 violation\n" +
      "  line 1: mask: too short\n",
  );
});

test("logprobs that were computed again are part of the result", () => {
  const text = verificationText({
    file: "samples.jsonl",
    samples: 3,
    violations: [],
    rescore: {
      engine: "reference",
      logprobConvention: "tempered",
      temperature: 1,
      tokenCount: 2_000,
      rowCount: 2,
      emptyCount: 0,
      skipped: [{ line: 3, rule: "context", detail: "too long" }],
      meanDifference: 0.00001234,
      largest: {
        line: 2,
        rolloutId: "shop/train/3#0",
        turnIndex: 1,
        index: 40,
        tokenId: 5,
        recorded: -1,
        rescored: -1.25,
        difference: 0.25,
      },
      tolerance: 1e-5,
      beyondToleranceCount: 1,
      beyondTolerance: [],
    },
  });
  expect(text).toBe(
    "samples.jsonl\n" +
      "  samples     3\n" +
      "  rescored    2,000 tokens of 2 rows with reference at temperature 1\n" +
      "  difference  mean 0.0000123, largest 0.25 nats (tolerance 0.00001): shop/train/3#0, turn 1, token 40 of line 2\n" +
      "  not scored  line 3: context: too long\n" +
      "  result      1 token beyond the tolerance, 1 row not scored\n",
  );
});
