import { expect, test } from "vitest";
import { systemClock } from "../../async/clock.ts";
import type { Engine, GenerateRequest, Generation } from "../../engine/engine.ts";
import { preparedEngine } from "../lamp-episode.fixture.ts";
import { CallWatch } from "./call-watch.ts";
import { requestTurn, type TurnCall } from "./request-turn.ts";

const stopId = 9;

const request: GenerateRequest = {
  promptIds: [1],
  sampling: {},
  maxNewTokens: 5,
  stopTokenIds: [stopId],
  requestId: "r",
  sessionId: "s",
};

function generationOf(outputIds: readonly number[]): Generation {
  return {
    outputIds,
    logprobs: outputIds.map(() => -1),
    finish: { type: "length" },
    pieces: [
      { requestId: "r", tokenCount: outputIds.length, policyVersion: "1", finish: "length" },
    ],
    discarded: [],
  };
}

async function ask(
  generate: Engine["generate"],
  options: Partial<Omit<TurnCall, "watch">> = {},
): Promise<Generation> {
  const { signal } = new AbortController();
  using watch = new CallWatch(signal, systemClock);
  return await requestTurn({ ...preparedEngine([]), generate }, request, {
    watch,
    boundary: { party: "engine", what: "sample turn r", timeoutMs: 5000 },
    cutShort: signal,
    ...options,
  });
}

test("a reply whose last id is a stop id was not cut short", async () => {
  const reply = await ask(async () => generationOf([5, stopId]));
  expect(reply.finish).toEqual({ type: "stop", matched: stopId });
  expect(reply.pieces).toMatchObject([{ finish: "stop" }]);
});

test.each<[string, Engine["generate"], string]>([
  ["with more ids than requested", async () => generationOf([1, 2, 3, 4, 5, 6]), "at most 5"],
  [
    "with other ids than it reported before",
    async (_request, options) => {
      options!.onTokens!({ tokenIds: [5, 6], logprobs: [-1, -1] });
      return generationOf([5, 7]);
    },
    "the ids that the engine reported while sampling differ from those that it returned",
  ],
])("a reply %s is the engine's failure", async (_, generate, message) => {
  const failed = ask(generate, { onTokens: () => {} });
  await expect(failed).rejects.toMatchObject({ party: "engine", code: "engine/bad-reply" });
  await expect(failed).rejects.toThrow(message);
});

test("the engine's reports after the end of the call are ignored, and end a wait", async () => {
  const held: boolean[] = [];
  let report: (isHeld: boolean) => void = () => {};
  const generate: Engine["generate"] = async (_request, options) => {
    report = options!.onHeld!;
    report(true);
    return generationOf([5]);
  };
  await ask(generate, { onHeld: (isHeld) => held.push(isHeld) });
  report(true);
  expect(held).toEqual([true, false]);
});
