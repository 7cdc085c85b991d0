import { expect, test } from "vitest";
import { joinGenerations } from "../join-generations.ts";
import { TurnProgress } from "../turn-progress.ts";
import { readReplyObject } from "./generate-reply.ts";

const turn = {
  promptIds: [1, 2],
  sampling: {},
  maxNewTokens: 8,
  stopTokenIds: [9],
  requestId: "r",
  sessionId: "s",
};
const request = { requestId: "r", inputIds: [1, 2], maxNewTokens: 8, turn };

function read(more: object) {
  const meta = {
    finish_reason: { type: "stop", matched: 9 },
    prompt_tokens: 2,
    output_token_logprobs: [[-0.5, 9, null]],
    weight_version: "1",
    ...more,
  };
  const reply = readReplyObject({ output_ids: [9], meta_info: meta }, request);
  if (reply.type !== "finished") throw new Error(reply.type);
  return reply.piece;
}

test("readReplyObject() reads the time in the queue, and ignores invalid values", () => {
  expect(read({ queue_time: 0.001054586999998719 }).queueMs).toBe(1.055);
  expect(read({ queue_time: 0 }).queueMs).toBe(0);
  for (const odd of [undefined, null, "0.1", -1]) {
    expect(read({ queue_time: odd })).not.toHaveProperty("queueMs");
  }
});

test("the queue times of a turn's requests add up", () => {
  const progress = new TurnProgress(turn);
  progress.add(progress.nextPiece(), read({ queue_time: 0.5 }), "abort");
  progress.add(progress.nextPiece(), read({}), "abort");
  progress.add(progress.nextPiece(), read({ queue_time: 0.25 }), "stop");
  const generation = progress.toGeneration({ type: "stop" });
  expect(generation.queueMs).toBe(750);
  const { queueMs: _, ...silent } = generation;
  expect(joinGenerations(silent, silent)).not.toHaveProperty("queueMs");
  expect(joinGenerations(silent, generation).queueMs).toBe(750);
  expect(joinGenerations(generation, generation).queueMs).toBe(1500);
});
