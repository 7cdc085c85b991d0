import { expect, test } from "vitest";
import type { PieceRequest } from "../http/piece-request.ts";
import { readVllmReply } from "./piece-reading.ts";

const turn = {
  promptIds: [1],
  sampling: {},
  maxNewTokens: 2,
  stopTokenIds: [2],
  vocabularySize: 10,
  requestId: "r",
  sessionId: "s",
};
const request = { inputIds: [1], maxNewTokens: 2, turn } as unknown as PieceRequest;

test.each([
  [3, { type: "length" }],
  [2, { type: "stop", matched: 2 }],
])("a reply that ends by `length` with id %i", (last, finish) => {
  const content = [5, last].map((id) => ({ token_id: id, logprob: -1 }));
  const choice = { token_ids: [5, last], logprobs: { content }, finish_reason: "length" };
  const reply = readVllmReply(JSON.stringify({ choices: [choice] }), { request, api: "generate" });
  expect(reply).toMatchObject({ type: "finished", finish });
});
