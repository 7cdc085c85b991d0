import { expect, test } from "vitest";
import type { Message } from "../../message.ts";
import { findLostParts } from "./lost-parts.ts";
import { wholeTurns } from "./turn-forms.ts";

const user: Message = { role: "user", content: "Go" };
const turn: Message = { role: "assistant", content: " I look.\n", reasoning: "Hm." };

test("a prompt with all parts of its assistant turns in order has no notes", () => {
  expect(findLostParts("Go|Hm.|I look.", [user, turn], wholeTurns)).toEqual([]);
  expect(findLostParts("", [user, { role: "assistant", content: "" }], wholeTurns)).toEqual([]);
  const quoted: Message = { role: "assistant", content: 'Say "é"' };
  expect(findLostParts('["Say \\"\\u00e9\\""]', [quoted], wholeTurns)).toEqual([]);
});

test("missing parts are noted once each", () => {
  expect(findLostParts("Go|I look.", [user, turn], wholeTurns)).toEqual(["reasoning-not-shown"]);
  expect(findLostParts("Go|Hm.", [user, turn], wholeTurns)).toEqual(["text-not-shown"]);
  expect(findLostParts("Go", [user, turn, turn], wholeTurns)).toEqual([
    "reasoning-not-shown",
    "text-not-shown",
  ]);
});

test("a text that stands only before the text of the turn before is missing", () => {
  const later: Message = { role: "assistant", content: "Done." };
  expect(findLostParts("Done.|Hm.|I look.", [turn, later], wholeTurns)).toEqual(["text-not-shown"]);
});

test("reasoning that a later message repeats makes no text count as missing", () => {
  const repeated: Message = { role: "assistant", content: "Hm." };
  expect(findLostParts("Go|I look.|Hm.", [user, turn, repeated], wholeTurns)).toEqual([]);
});

test("text after its calls is noted", () => {
  const toolCalls = [{ id: "c1", name: "look", argumentsText: "{}" }];
  const calling: Message = { role: "assistant", content: "I look.", toolCalls };
  const forms = { ...wholeTurns, putsCallsFirst: true };
  expect(findLostParts("look|I look.", [calling], forms)).toEqual(["text-after-calls"]);
  expect(findLostParts("look|", [{ ...calling, content: " " }], forms)).toEqual([]);
});
