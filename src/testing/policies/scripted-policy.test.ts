import { describe, expect, test } from "vitest";
import { createScriptedPolicy } from "./scripted-policy.ts";
import { createSeededPolicy } from "./seeded-policy.ts";
import type { PolicyRequest, PolicyToken, ServerPolicy } from "./server-policy.ts";
import { sessionScriptPolicy } from "./session-script-policy.ts";

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
  const policy = createScriptedPolicy({ s: [{ outputIds: [10, 11, 2] }, { outputIds: [12, 2] }] });
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

test("a script refuses unknown sessions and failed checks", () => {
  const turn = { outputIds: [2], check: ({ inputIds }: PolicyRequest) => `got ${inputIds.join()}` };
  const policy = createScriptedPolicy({ s: [turn] });
  expect(() => policy.begin(toRequest([1], "t"))).toThrow("there is no script for session t");
  expect(() => policy.begin(toRequest([1, 2]))).toThrow("Cannot play turn 1: got 1,2");
});

test("a seeded policy's tokens are a function of all ids before them", () => {
  const policy = createSeededPolicy({ seed: 7, meanLength: 1_000_000 });
  const whole = play(policy, [1, 2, 3], 6);
  expect(play(policy, [1, 2, 3, ...ids(whole.slice(0, 2))], 4)).toEqual(whole.slice(2));
  expect(play(policy, [1, 2, 4], 6)).not.toEqual(whole);
  expect(play(createSeededPolicy({ seed: 8, meanLength: 1_000_000 }), [1, 2, 3], 6)).not.toEqual(
    whole,
  );
  for (const { id, logprob } of whole) {
    expect(id).toBeLessThan(1_000);
    expect(logprob).toBeLessThanOrEqual(0);
  }
});

describe("a policy scores", () => {
  const score = (policy: ServerPolicy, inputIds: readonly number[]): unknown =>
    policy.score?.({ inputIds, rid: "r", routingKey: undefined });

  test("by a script: its sampled ids after the same prompt, and all other ids with -1", () => {
    const policy = createScriptedPolicy([{ outputIds: [10, 11, 2], logprobs: [-0.5, -0.25, 0] }]);
    expect(score(policy, [1, 10, 11])).toEqual([-1, -1, -1]);
    play(policy, [1]);
    expect(score(policy, [1, 10, 11, 2, 7])).toEqual([-1, -0.5, -0.25, 0, -1]);
    expect(score(policy, [1, 10, 12, 2])).toEqual([-1, -0.5, -1, -1]);
    expect(score(policy, [3, 10])).toEqual([-1, -1]);
  });

  test("by a seed: sampled ids with their reported logprob, and other ids lower", () => {
    const policy = createSeededPolicy({ seed: 7, meanLength: 1_000_000 });
    const whole = play(policy, [1, 2, 3], 6);
    const sampled = ids(whole);
    const scores = whole.map(({ logprob }) => logprob);
    expect(score(policy, [1, 2, 3, ...sampled])).toEqual([
      expect.any(Number),
      expect.any(Number),
      expect.any(Number),
      ...scores,
    ]);
    const [first = 0] = scores;
    const other = sampled.with(0, (sampled[0] ?? 0) + 1);
    expect((score(policy, [1, 2, 3, ...other]) as number[])[3]).toBe(first - 4);
  });

  test("by sessions' scripts: the text after a turn's marker, by its position", () => {
    const otherwise = [10, 11, 2];
    const policy = sessionScriptPolicy({ turnMarkerIds: [5, 6], sessions: {}, otherwise });
    const prompt = [1, 5, 6];
    const second = [...prompt, 10, 11, 2, 7, 5, 6];
    const turn = play(policy, prompt).map(({ logprob }) => logprob);
    expect(play(policy, second).map(({ logprob }) => logprob)).toEqual(turn);
    const scores = score(policy, [...second, 10, 11, 2]) as number[];
    expect([scores.slice(3, 6), scores.slice(-3)]).toEqual([turn, turn]);
    expect(scores.slice(0, 3)).toEqual([-1, -1, -1]);
  });
});
