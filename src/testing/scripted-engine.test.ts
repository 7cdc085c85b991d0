import { expect, test } from "vitest";
import type { GenerateRequest } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { createScriptedEngine } from "./scripted-engine.ts";

function toRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptIds: [1, 2],
    sampling: {},
    maxNewTokens: 4,
    stopTokenIds: [9],
    requestId: "r",
    sessionId: "s",
    ...changes,
  };
}

test("`generate()` returns the script's turns in order", async () => {
  const engine = createScriptedEngine([
    { outputIds: [5, 9], logprobs: [-0.5, -1], policyVersion: "3" },
    { outputIds: [6] },
  ]);
  expect(await engine.generate(toRequest())).toEqual({
    outputIds: [5, 9],
    logprobs: [-0.5, -1],
    finish: { type: "stop", matched: 9 },
    pieces: [{ requestId: "r", tokenCount: 2, policyVersion: "3", finish: "stop" }],
    promptTokenCount: 2,
    discarded: [],
  });
  expect(await engine.generate(toRequest())).toMatchObject({
    logprobs: [-0.0625],
    finish: { type: "length" },
  });
  engine.assertDrained();
  expect(engine.requests.map(({ promptIds }) => promptIds)).toEqual([
    [1, 2],
    [1, 2],
  ]);
});

test("`assertDrained()` names turns that were not requested", async () => {
  const engine = createScriptedEngine({ s: [{ outputIds: [9] }, { outputIds: [9] }], t: [] });
  await engine.generate(toRequest());
  expect(() => engine.assertDrained()).toThrow(
    "The script is not drained: 1 turns of s were never asked for",
  );
});

test("a call that the script does not foresee throws, and is remembered", async () => {
  const engine = createScriptedEngine([]);
  const message = "Cannot sample request r of session s: the script has no turn left for it";
  await expect(engine.generate(toRequest())).rejects.toThrow(message);
  expect(() => engine.assertDrained()).toThrow(message);
});

test("a turn refuses another prompt, a smaller budget, and a failed check", async () => {
  const turns = [
    { outputIds: [9], promptIds: [1, 2, 3] },
    { outputIds: [5, 6, 7, 8, 9] },
    { outputIds: [9], check: ({ sessionId }: GenerateRequest) => `session ${sessionId}` },
  ];
  const engine = createScriptedEngine(turns);
  await expect(engine.generate(toRequest())).rejects.toThrow(
    "Cannot sample request r: its prompt is [1, 2], expected [1, 2, 3]",
  );
  await expect(engine.generate(toRequest())).rejects.toThrow(
    "Cannot sample request r: the script samples 5 ids, expected at most 4",
  );
  await expect(engine.generate(toRequest())).rejects.toThrow("Cannot sample request r: session s");
});

test("an outage is thrown unchanged", async () => {
  const error = new RolloutError("engine/timeout", "too slow");
  const engine = createScriptedEngine([{ error }]);
  await expect(engine.generate(toRequest())).rejects.toBe(error);
  engine.assertDrained();
});
