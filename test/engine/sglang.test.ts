import { expect, test } from "vitest";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createScriptedPolicy, startSglangTestServer } from "../../src/testing/index.ts";

test("`generate()` returns the ids and logprobs as they were sampled, stop id included", async () => {
  const policy = createScriptedPolicy([{ outputIds: [10, 11, 2], logprobs: [-0.125, -0.25, 0] }]);
  await using server = await startSglangTestServer({ policy });
  const engine = createSglangEngine({ url: server.url });
  const generation = await engine.generate({
    promptIds: [1, 2, 3],
    sampling: {},
    maxNewTokens: 16,
    stopTokenIds: [2],
    requestId: "a",
    sessionId: "s",
  });
  expect(generation).toEqual({
    outputIds: [10, 11, 2],
    logprobs: [-0.125, -0.25, 0],
    finish: { type: "stop", matched: 2 },
    pieces: [{ requestId: "a", tokenCount: 3, policyVersion: "default", finish: "stop" }],
    promptTokenCount: 3,
    cachedTokenCount: 0,
    discarded: [],
  });
  await engine.close();
});
