import { expect, test } from "vitest";
import { parseEntry } from "./journal-entry.ts";

const part = { from: 0, rows: 2, policyVersion: "1", size: 12, hash: "0".repeat(32) };
const piece = { requestId: "r", tokenCount: 2, policyVersion: "1", finish: "stop" };

function lineOf(generation: object): string {
  return JSON.stringify({
    type: "turn",
    sessionId: "s",
    index: 0,
    key: { environment: "", holdsAssistant: false },
    tools: "[]",
    parts: [],
    requestCount: 1,
    record: {
      replyId: "r",
      environment: [],
      prompt: { type: "root", ids: [1] },
      generation: { outputIds: [7, 8], logprobs: [-1, -0.5], pieces: [piece], ...generation },
    },
  });
}

test.each<[string, object]>([
  ["an id that no tokenizer has", { outputIds: [7, 2 ** 31] }],
  ["a positive logprob", { logprobs: [-1, 0.5] }],
  ["a logprob too few", { logprobs: [-1] }],
  ["pieces of other ids", { pieces: [{ ...piece, tokenCount: 3 }] }],
  ["no pieces", { pieces: undefined }],
  ["columns that are no object", { columns: 7 }],
  ["a column that is no list", { columns: { routedExperts: {} } }],
  ["an unknown column", { columns: { routes: [] } }],
  [
    "a column's part without a hash",
    { columns: { routedExperts: [{ ...part, hash: undefined }] } },
  ],
  ["columns with a gap", { columns: { routedExperts: [part, { ...part, from: 3 }] } }],
])("a turn in the journal with %s is damaged", (_, wrong) => {
  expect(parseEntry(lineOf({}))).toMatchObject({ type: "turn" });
  expect(parseEntry(lineOf({ columns: { routedExperts: [part] } }))).toBeDefined();
  expect(parseEntry(lineOf(wrong))).toBeUndefined();
});
