import { expect, test } from "vitest";
import { remainingRequest, seedAfter } from "./continued-sampling.ts";
import type { GenerateRequest } from "./engine.ts";

const request: GenerateRequest = {
  promptIds: [1, 2],
  sampling: { temperature: 0.5, seed: 5 },
  maxNewTokens: 9,
  stopTokenIds: [3],
  vocabularySize: 99,
  requestId: "r",
  sessionId: "s",
};

test("a turn without sampled ids is requested unchanged", () => {
  expect(remainingRequest(request, [])).toBe(request);
  const held: GenerateRequest = { ...request, sampling: { extra: { stop: ["END"] } } };
  expect(remainingRequest(held, [])).toBe(held);
});

test("a continued turn gets another seed and a smaller budget", () => {
  expect(remainingRequest(request, [7])).toEqual({
    ...request,
    promptIds: [1, 2, 7],
    maxNewTokens: 8,
    sampling: { temperature: 0.5, seed: 1_327_217_890 },
  });
  const unseeded = { ...request, sampling: { temperature: 0.5 } };
  expect(remainingRequest(unseeded, [7])?.sampling).toEqual({ temperature: 0.5 });
});

test("a minimum number of tokens applies to the complete turn", () => {
  const leastOf = (extra: Readonly<Record<string, unknown>>): unknown =>
    remainingRequest({ ...request, sampling: { extra } }, [7, 8, 9])?.sampling;
  expect(leastOf({ min_new_tokens: 8, ignore_eos: true })).toEqual({
    extra: { min_new_tokens: 5, ignore_eos: true },
  });
  expect(leastOf({ min_tokens: 2 })).toEqual({ extra: { min_tokens: 0 } });
});

test.each<[what: string, demand: Partial<GenerateRequest>]>([
  ["a schema", { constraint: { type: "json-schema", schema: {} } }],
  ["SGLang's grammar", { sampling: { extra: { ebnf: 'root ::= "a"' } } }],
  ["vLLM's form", { sampling: { extra: { structured_outputs: { choice: ["a", "b"] } } } }],
  ["vLLM's older form", { sampling: { extra: { guided_regex: "a+" } } }],
  ["the engine's own stop texts", { sampling: { extra: { stop: ["END"] } } }],
])("a turn with %s cannot be continued", (_, demand) => {
  expect(remainingRequest({ ...request, ...demand }, [7])).toBeUndefined();
});

test("a rule that restricts nothing does not prevent continuing", () => {
  const extra = { stop: [], json_schema: null, regex: "", logit_bias: { 7: 1 } };
  const rest = remainingRequest({ ...request, sampling: { extra } }, [7]);
  expect(rest).toMatchObject({ promptIds: [1, 2, 7], sampling: { extra } });
});

test.each<Readonly<Record<string, unknown>>>([
  { response_format: { type: "text" } },
  { guided_decoding_backend: "xgrammar" },
  { guided_whitespace_pattern: " ?" },
  { guided_json_object: false },
  { structured_outputs: {} },
  { structured_outputs: { json: null, choice: [], disable_any_whitespace: true } },
  { stop: [""], bad_words: ["", ""] },
])("a parameter that restricts nothing does not prevent continuing: %j", (extra) => {
  expect(remainingRequest({ ...request, sampling: { extra } }, [7])).toMatchObject({
    sampling: { extra },
  });
});

test.each<Readonly<Record<string, unknown>>>([
  { response_format: { type: "json_object" } },
  { guided_json: {} },
  { guided_json_object: true },
  { structured_outputs: { json: {} } },
  { structured_outputs: { json_object: true, disable_any_whitespace: true } },
  { stop: ["", "END"] },
  { stop: "END" },
])("a parameter that restricts the output prevents continuing: %j", (extra) => {
  expect(remainingRequest({ ...request, sampling: { extra } }, [7])).toBeUndefined();
});

test("the seed depends on the number of ids, not on the number of interruptions", () => {
  expect(seedAfter(seedAfter(7, 8), 120)).toBe(seedAfter(7, 128));
});

test("a large seed keeps its digits", () => {
  expect(seedAfter(Number.MAX_SAFE_INTEGER, 3)).toBe((2 ** 31 - 1 + 3 * 1_327_217_885) % 2 ** 31);
});

test("no two lengths of a turn share a seed", () => {
  const seeds = Array.from({ length: 32_768 }, (_, count) => seedAfter(3, count));
  expect(new Set(seeds).size).toBe(seeds.length);
  expect(seeds.every((seed) => Number.isSafeInteger(seed) && seed >= 0)).toBe(true);
});
