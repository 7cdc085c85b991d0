import { expect, test } from "vitest";
import { ExactMessages } from "./exact-messages.ts";

test("an object of any size is sent as it is written", () => {
  const messages = new ExactMessages();
  const value = new Map([["a", 'x\\"é'.repeat(2_000_000)]]);
  const text = JSON.stringify({ params: { arguments: messages.carry(value), name: "b" } });
  const expected = { params: { arguments: { a: value.get("a") }, name: "b" } };
  expect(messages.outgoing(text) === JSON.stringify(expected)).toBe(true);
});
