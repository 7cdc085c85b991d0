import { expect, test } from "vitest";
import type { ClientMessage } from "../conversation.ts";
import { RecentRequests } from "./recent-requests.ts";

const user = (content: string): ClientMessage => ({ role: "user", content });
const said = (content: string, argumentsText = "{}"): ClientMessage => ({
  role: "assistant",
  content,
  marks: [],
  calls: [{ id: "call_1", name: "look", argumentsText }],
});
const result = (content: string): ClientMessage => ({ role: "tool", callId: "call_1", content });

test("find() returns the longest earlier request that a new one repeats exactly", () => {
  const recent = new RecentRequests<string>();
  const [hi, first, answer] = [user("hi"), said("a"), result("r")];
  recent.keep([hi], 0, "root");
  expect(recent.find([user("hi"), said("a")], 0)).toEqual({ place: "root", length: 1 });
  recent.keep([user("hi"), said("a"), result("r")], 0, "deep");
  const next = [hi, first, answer, said("b"), user("on")];
  expect(recent.find(next, 0)).toEqual({ place: "deep", length: 3 });
  // Other tools, another history, no new message, and no assistant turn after the repeated part.
  expect(recent.find(next, 1)).toBe(undefined);
  expect(recent.find([hi, said("a", "{ }"), answer, said("b")], 0)).toBe(undefined);
  expect(recent.find([hi, first, answer], 0)).toBe(undefined);
  expect(recent.find([hi, first, answer, user("more")], 0)).toBe(undefined);
});

test("a few parallel conversations are remembered", () => {
  const recent = new RecentRequests<number>();
  for (let index = 0; index < 10; index++) recent.keep([user(`hi ${index}`)], 0, index);
  const find = (index: number) => recent.find([user(`hi ${index}`), said("a")], 0)?.place;
  expect([0, 1, 2, 9].map(find)).toEqual([undefined, undefined, 2, 9]);
});
