import { expect, test } from "vitest";
import { checkGeneration } from "./check-sampled.ts";
import type { Generation } from "./engine.ts";

const request = {
  ...{ promptIds: [1, 2], sampling: {}, maxNewTokens: 8, stopTokenIds: [9] },
  ...{ requestId: "r", sessionId: "s" },
};

test("what an engine writes into its lists later does not reach the turn that it returned", () => {
  const outputIds = [7, 9];
  const logprobs = [-0.5, -0.25];
  const piece = { requestId: "r", tokenCount: 2, policyVersion: "1", finish: "stop" as const };
  const pieces = [piece];
  const discarded = [{ requestId: "q", reason: "lost" }];
  const finish = { type: "stop", matched: 9 } as const;
  const sampled = { outputIds, logprobs, finish, pieces, discarded, queueMs: 3 };
  const kept = checkGeneration(sampled, request);
  const before = structuredClone(sampled);
  outputIds.splice(0, 2, 5, 5, 5);
  logprobs.length = 0;
  Object.assign(piece, { policyVersion: "2" });
  Object.assign(finish, { matched: 5 });
  pieces.push(piece);
  discarded.pop();
  expect(kept).toEqual(before);
});

test("what is no part of a generation is not kept with it", () => {
  const sampled = {
    outputIds: [7],
    logprobs: [-0.5],
    finish: { type: "length" },
    pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "1", finish: "length" }],
    discarded: [],
  } as const satisfies Generation;
  const more: Generation = Object.assign({ ids: [1, 2, 3, 4] }, sampled);
  expect(checkGeneration(more, request)).toEqual(sampled);
});
