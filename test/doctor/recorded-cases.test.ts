import { describe, expect, test } from "vitest";
import { diagnose, diagnosisPlot, diagnosisText } from "../../src/doctor/index.ts";
import { readRecordedCases, toArguments } from "./recorded-cases.ts";

/** The causes of each case: findings, and in brackets those within the thresholds. */
const expected: Readonly<Record<string, readonly string[]>> = {
  "fp32 trainer, fp32 engine": [],
  "fp32 trainer, bf16 engine": ["(numerics)"],
  "logprobs shifted by one": ["shifted"],
  "stale weights": ["stale-weights"],
  "other weights under the same version": ["other-weights"],
  "trainer at temperature 1, engine at 0.7": ["wrong-temperature"],
  "engine over kept tokens, trainer over all": ["other-token-set"],
  "routes replayed": [],
  "routes replayed, bf16 trainer": ["numerics"],
  "routes chosen again by a bf16 trainer": ["routes-not-replayed"],
  "routes dropped and padded": ["routes-not-replayed"],
  "routes shifted by one": ["routes-not-replayed"],
};

const cases = readRecordedCases();

describe("diagnose() names the causes of recorded mismatches", () => {
  test.each(cases.map((one) => [one.name, one] as const))("%s", async (name, one) => {
    const diagnosis = await diagnose(...toArguments(one));
    const named = diagnosis.causes.map(({ name: cause, isFinding }) =>
      isFinding ? cause : `(${cause})`,
    );
    expect(named, diagnosisText(diagnosis)).toEqual(expected[name]);
    const [first = "healthy"] = expected[name]!;
    expect(diagnosis.verdict).toBe(first.replaceAll(/[()]/g, ""));
    expect(diagnosis.hasFinding).toBe(named.some((cause) => !cause.startsWith("(")));
    expect(diagnosis.problems).toEqual([]);
  });

  test("all cases were recorded", () => {
    expect(cases.map(({ name }) => name)).toEqual(Object.keys(expected));
  });
});

/** Diagnoses a recorded case. */
async function examine(name: string) {
  return await diagnose(...toArguments(cases.find((one) => one.name === name)!));
}

test("routes are named by their form", async () => {
  const texts = await Promise.all(
    ["chosen again by a bf16 trainer", "dropped and padded", "shifted by one"].map(
      async (name) => (await examine(`routes ${name}`)).text,
    ),
  );
  expect(texts[0]).toContain("the trainer's routers chose by themselves");
  expect(texts[1]).toContain("the trainer dropped or padded them");
  expect(texts[2]).toContain("have the routes of the token before: they are shifted by one");
});

test("a shift is taken back before the rest is examined", async () => {
  const { all, corrected, shiftedRows } = await examine("logprobs shifted by one");
  expect(shiftedRows).toEqual({ "-1": 8 });
  expect(all!.relative).toBeGreaterThan(1);
  expect(corrected!.relative).toBeLessThan(1e-3);
});

test("the factor of a temperature is near the run's", async () => {
  const { temperature, text } = await examine("trainer at temperature 1, engine at 0.7");
  expect(Math.abs(Math.log(temperature!.factor / 0.7))).toBeLessThan(0.1);
  expect(text).toContain(
    "The engine sampled at temperature 0.7: the trainer scored at temperature 1.",
  );
});

test("staleness is separated from numerics", async () => {
  const { byLag, byVersion } = await examine("stale weights");
  expect(Object.keys(byLag)).toEqual(["0", "1"]);
  expect(byLag["0"]!.relative).toBeLessThan(1e-3);
  expect(byLag["1"]!.relative).toBeGreaterThan(0.2);
  expect(byVersion["1"]).toEqual(byLag["0"]);
});

test("the text begins with the verdict, and the picture has it", async () => {
  const diagnosis = await examine("stale weights");
  const lines = diagnosisText(diagnosis).split("\n");
  expect(lines[0]).toMatch(/^stale-weights: Weights differ by version: mean \|d\| is /);
  expect(lines).toContain("mean |d| by lag");
  expect(lines).toContain("tokens by d (nats)");
  const plot = diagnosisPlot(diagnosis);
  expect(plot).toContain(">verdict: stale-weights<");
  expect(plot).toContain(">lag 1<");
});
