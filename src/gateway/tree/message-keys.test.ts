import { describe, expect, test } from "vitest";
import type { ClientMessage } from "../conversation.ts";
import { DigestCache, keyMessages } from "./message-keys.ts";
import { SessionTree } from "./session-tree.ts";
import { toSentTurn } from "./turn-node.ts";

const turn = (...ids: readonly string[]): ClientMessage => {
  const calls = ids.map((id) => ({ id, name: "look", argumentsText: "{}" }));
  return { role: "assistant", content: "", calls, marks: [] };
};

const result = (callId: string, content: string): ClientMessage => {
  return { role: "tool", callId, content };
};

const user = (content: string): ClientMessage => ({ role: "user", content });

/** Returns the texts in their new order, and the anomalies. */
function order(messages: readonly ClientMessage[]) {
  const { keyed, anomalies } = keyMessages(
    messages,
    { ignore: [] },
    { digests: new DigestCache() },
  );
  const texts = keyed.flatMap(({ message }) => (message.content === "" ? [] : [message.content]));
  return { texts: texts.join(), notes: anomalies.map(({ note }) => note) };
}

describe("results of calls", () => {
  test.each([
    ["in the order of the calls", ["a", "b"], "A,B", []],
    ["in another order", ["b", "a"], "A,B", ["results-reordered"]],
  ] as const)("that arrive %s are put in the calls' order", (_, ids, texts, notes) => {
    const results = ids.map((id) => result(id, id.toUpperCase()));
    expect(order([turn("a", "b"), ...results])).toEqual({ texts, notes });
  });

  test("follow their turn directly, even after user and system messages", () => {
    const reminder: ClientMessage = { role: "system", content: "S" };
    const messages = [turn("a", "b"), result("a", "A"), user("U"), reminder, result("b", "B")];
    expect(order(messages)).toEqual({ texts: "A,B,U,S", notes: ["results-reordered"] });
  });

  test("belong to an earlier turn that made the call", () => {
    const messages = [
      turn("a", "b"),
      result("a", "A"),
      turn("c"),
      result("c", "C"),
      result("b", "B"),
    ];
    expect(order(messages)).toEqual({
      texts: "A,B,C",
      notes: ["call-without-result", "results-reordered"],
    });
  });

  test("of a repeated id belong to the newest turn that used it", () => {
    const messages = [turn("x", "y"), result("x", "1"), result("y", "2"), turn("y", "x")];
    expect(order([...messages, result("x", "3"), result("y", "4")])).toEqual({
      texts: "1,2,4,3",
      notes: ["results-reordered"],
    });
  });

  test("keep their place if no call matches", () => {
    expect(order([user("U"), result("z", "Z"), turn("a"), user("V"), result("a", "A")])).toEqual({
      texts: "U,Z,A,V",
      notes: ["result-without-call", "results-reordered"],
    });
  });

  test("replace an earlier result of their call after the same turn", () => {
    const turns = [turn("a", "b"), result("a", "running"), result("a", "A"), result("b", "B")];
    expect(order(turns)).toEqual({ texts: "A,B", notes: ["second-result"] });
    const late = [turn("a", "b"), result("a", "1"), result("b", "B"), user("U"), result("a", "2")];
    expect(order(late)).toEqual({ texts: "2,B,U", notes: ["results-reordered", "second-result"] });
    const thrice = [turn("a"), result("a", "1"), result("a", "2"), result("a", "3")];
    expect(order(thrice)).toEqual({ texts: "3", notes: ["second-result"] });
  });

  test("stay where they are if the call has a result before a later turn", () => {
    const later = [
      turn("a"),
      result("a", "running"),
      turn("b"),
      result("b", "B"),
      result("a", "A"),
    ];
    expect(order(later)).toEqual({ texts: "running,B,A", notes: ["second-result"] });
  });

  test("with unknown ids are assigned to the calls without a result", () => {
    const messages = [turn("a", "b", "c"), result("?", "A"), result("b", "B"), result("!", "C")];
    expect(order([...messages, user("U"), result("-", "D")])).toEqual({
      texts: "A,B,C,U,D",
      notes: ["result-without-call", "call-without-result"],
    });
  });

  test("have the same keys when the search starts at a later turn", () => {
    const messages = [
      turn("a", "b"),
      result("a", "A"),
      turn("c"),
      result("c", "C"),
      result("b", "B"),
    ];
    const keysFrom = (start: number) =>
      keyMessages(messages, { ignore: [] }, { digests: new DigestCache(), start })
        .keyed.slice(start === 0 ? 2 : 0)
        .map(({ key }) => key());
    expect(keysFrom(2)).toEqual(keysFrom(0));
  });

  test("sort ten thousand results of one id in linear time", () => {
    const ids = Array.from({ length: 10_000 }, () => "x");
    const results = ids.map((id, place) => result(id, `${place}`));
    expect(order([turn(...ids), ...results]).notes).toEqual([]);
  });
});

test("results get the ids under which the calls were sent, even if the client renames them", () => {
  const tree = new SessionTree<number>({ ignore: [], strictness: "calls" });
  const opening = [user("Go")];
  const sent = toSentTurn([
    { type: "call", id: "fc_1", callId: "call_1", name: "look", text: "{}" },
    { type: "call", id: "fc_2", callId: "call_2", name: "look", text: "{}" },
  ]);
  const begun = tree.place({ messages: opening, tools: [] });
  tree.add(begun, { turn: sent, record: 0, isDelivered: true });
  const { environment, notes } = tree.place({
    messages: [...opening, turn("mine", "mine"), result("mine", "A"), result("mine", "B")],
    tools: [],
  });
  expect({ environment, notes }).toEqual({
    environment: [result("call_1", "A"), result("call_2", "B")],
    notes: ["ids-differ"],
  });
});
