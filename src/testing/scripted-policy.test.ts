import { expect, test } from "vitest";
import { scriptedPolicy } from "./scripted-policy.ts";
import { seededPolicy } from "./seeded-policy.ts";
import type { PolicyRequest, PolicyToken, ServerPolicy } from "./server-policy.ts";

function toRequest(inputIds: readonly number[], routingKey = "s"): PolicyRequest {
  return {
    inputIds,
    rid: "r",
    routingKey,
    samplingParams: {},
    maxNewTokens: 8,
    stopTokenIds: [2],
    signal: new AbortController().signal,
  };
}

/** The first tokens that a policy samples after a prompt. */
function play(policy: ServerPolicy, inputIds: readonly number[], count = 100): PolicyToken[] {
  const tokens: PolicyToken[] = [];
  for (const token of policy.begin(toRequest(inputIds)) as Iterable<PolicyToken>) {
    if (tokens.push(token) === count) break;
  }
  return tokens;
}

const ids = (tokens: readonly PolicyToken[]): number[] => tokens.map(({ id }) => id);

test("a script gives the same turn to the same prompt, and the rest of it to a resumed one", () => {
  const policy = scriptedPolicy({ s: [{ outputIds: [10, 11, 2] }, { outputIds: [12, 2] }] });
  expect(ids(play(policy, [1]))).toEqual([10, 11, 2]);
  expect(ids(play(policy, [1]))).toEqual([10, 11, 2]);
  expect(play(policy, [1, 10])).toEqual([
    { id: 11, logprob: -0.125 },
    { id: 2, logprob: -0.1875 },
  ]);
  expect(policy.remaining()).toEqual({ s: 1 });
  expect(ids(play(policy, [1, 10, 11, 2, 7]))).toEqual([12, 2]);
  expect(policy.remaining()).toEqual({ s: 0 });
  expect(() => play(policy, [1, 10, 11, 2, 7, 12, 2, 8])).toThrow(
    "Cannot play turn 3: the script has 2",
  );
});

test("a script refuses sessions that it does not know, and what a check objects to", () => {
  const turn = { outputIds: [2], check: ({ inputIds }: PolicyRequest) => `got ${inputIds.join()}` };
  const policy = scriptedPolicy({ s: [turn] });
  expect(() => policy.begin(toRequest([1], "t"))).toThrow("there is no script for session t");
  expect(() => policy.begin(toRequest([1, 2]))).toThrow("Cannot play turn 1: got 1,2");
});

test("a seeded policy's tokens are a function of all ids before them", () => {
  const policy = seededPolicy({ seed: 7, meanLength: 1_000_000 });
  const whole = play(policy, [1, 2, 3], 6);
  expect(play(policy, [1, 2, 3, ...ids(whole.slice(0, 2))], 4)).toEqual(whole.slice(2));
  expect(play(policy, [1, 2, 4], 6)).not.toEqual(whole);
  expect(play(seededPolicy({ seed: 8, meanLength: 1_000_000 }), [1, 2, 3], 6)).not.toEqual(whole);
  for (const { id, logprob } of whole) {
    expect(id).toBeLessThan(1_000);
    expect(logprob).toBeLessThanOrEqual(0);
  }
});
