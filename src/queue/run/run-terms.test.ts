import { expect, test } from "vitest";
import type { RunManifest } from "../../run/folder/run-folder.ts";
import { describeDifference, hashTerms, termsOf } from "./run-terms.ts";

const manifest: RunManifest = {
  format: 1,
  turnwright: "0.1.0",
  configuration: { env: "shop", "max-turns": 20, temperature: 1, tasks: "0-3", seed: 1 },
  identity: {
    tokenizer: "a".repeat(64),
    chatTemplate: "b".repeat(64),
    environmentData: "c".repeat(64),
  },
  found: {
    engine: { kind: "sglang", contextLength: 4_096, logprobConvention: "tempered" },
  },
};

test("settings for the run's own process may differ at its workers", () => {
  const own = { temperature: 0.5, tasks: "7", seed: 9, samples: 3 };
  const other = { ...manifest, configuration: { ...manifest.configuration, ...own } };
  expect(describeDifference(termsOf(other), termsOf(manifest))).toBeUndefined();
  expect(hashTerms(termsOf(other))).toBe(hashTerms(termsOf(manifest)));
});

test.each([
  ["turnwright", { turnwright: "0.2.0" }, "turnwright differs (here 0.2.0, the run's 0.1.0)"],
  [
    "tokenizer",
    { identity: { ...manifest.identity, tokenizer: "d".repeat(64) } },
    "tokenizer differs (here dddddddddddd, the run's aaaaaaaaaaaa)",
  ],
  [
    "template",
    { identity: { ...manifest.identity, chatTemplate: "d".repeat(64) } },
    "chatTemplate differs (here dddddddddddd, the run's bbbbbbbbbbbb)",
  ],
  [
    "environment",
    { identity: { ...manifest.identity, environmentData: "d".repeat(64) } },
    "environmentData differs (here dddddddddddd, the run's cccccccccccc)",
  ],
  [
    "context",
    { found: { engine: { kind: "sglang", contextLength: 8_192, logprobConvention: "tempered" } } },
    "contextLength differs (here 8192, the run's 4096)",
  ],
  [
    "kind of logprobs",
    { found: { engine: { kind: "sglang", contextLength: 4_096, logprobConvention: "raw" } } },
    "logprobConvention differs (here raw, the run's tempered)",
  ],
])("another %s is named", (_, change, expected) => {
  expect(describeDifference(termsOf({ ...manifest, ...change }), termsOf(manifest))).toBe(expected);
});

test("a setting is compared by its hash, and the seed counts as one if examples are drawn", () => {
  const terms = termsOf(manifest);
  expect(terms["--max-turns"]).toMatch(/^[0-9a-f]{64}$/);
  const other = (configuration: object) =>
    termsOf({ ...manifest, configuration: { ...manifest.configuration, ...configuration } });
  expect(describeDifference(other({ "max-turns": 3 }), terms)).toMatch(
    /^--max-turns differs \(here \w{12}, the run's \w{12}\)$/,
  );
  const columns = other({ columns: "routedExperts=48x8/128" });
  expect(describeDifference(terms, columns)).toMatch(/^--columns differs \(here \w{12}/);
  const fewShot = other({ agent: "few-shot" });
  expect(describeDifference(other({ agent: "few-shot", seed: 2 }), fewShot)).toMatch(
    /^--seed differs/,
  );
});

test("an engine with an assumed kind of logprobs reports that kind", () => {
  const known = { ...manifest, identity: { ...manifest.identity, logprobConvention: "tempered" } };
  expect(describeDifference(termsOf(manifest), termsOf(known))).toBeUndefined();
});
