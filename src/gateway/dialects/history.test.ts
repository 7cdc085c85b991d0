import { describe, expect, test } from "vitest";
import { dialects } from "./registry.ts";

const call = (id: string) => ({ id, name: "look", argumentsText: "{}" });

const user = { role: "user", content: "Go" };

describe("parallel calls that come back one by one are one turn", () => {
  const calls = ["a", "b", "c"];
  const results = calls.map((id) => ({ role: "tool", callId: id, content: id.toUpperCase() }));

  test("in Chat Completions", () => {
    const messages = [
      user,
      ...calls.map((id, place) => ({
        role: "assistant",
        content: place === 1 ? "And" : null,
        tool_calls: [{ id, type: "function", function: { name: "look", arguments: "{}" } }],
      })),
      ...calls.map((id) => ({ role: "tool", tool_call_id: id, content: id.toUpperCase() })),
    ];
    expect(dialects.chat.decode({ messages }).messages).toEqual([
      user,
      { role: "assistant", content: "And", calls: calls.map(call), marks: [] },
      ...results,
    ]);
  });

  test("in Messages, with results in several messages", () => {
    const messages = [
      user,
      ...calls.map((id) => ({
        role: "assistant",
        content: [{ type: "tool_use", id, name: "look", input: {} }],
      })),
      ...calls.map((id) => ({
        role: "user",
        content: [{ type: "tool_result", tool_use_id: id, content: id.toUpperCase() }],
      })),
    ];
    expect(dialects.messages.decode({ messages }).messages).toEqual([
      user,
      { role: "assistant", content: "", calls: calls.map(call), marks: [] },
      ...results,
    ]);
  });

  test("in Responses, with text and reasoning between them", () => {
    const called = (id: string) => {
      return { type: "function_call", call_id: id, name: "look", arguments: "{}" };
    };
    const input = [
      user,
      called("a"),
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "And" }] },
      called("b"),
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] },
      called("c"),
      ...calls.map((id) => {
        return { type: "function_call_output", call_id: id, output: id.toUpperCase() };
      }),
    ];
    expect(dialects.responses.decode({ input }).messages).toEqual([
      user,
      { role: "assistant", content: "And", reasoning: "Hm.", calls: calls.map(call), marks: [] },
      ...results,
    ]);
  });
});

test("turns that made no call, or whose calls have results, stay apart", () => {
  const messages = [
    user,
    { role: "assistant", content: "One" },
    { role: "assistant", content: "Two" },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "a", content: "A" },
    { role: "assistant", content: "Three" },
  ];
  const read = dialects.chat.decode({ messages }).messages;
  expect(read.map(({ role, content }) => `${role} ${content}`)).toEqual([
    ...["user Go", "assistant One", "assistant Two", "assistant ", "tool A", "assistant Three"],
  ]);
});

describe("items of Responses without a call", () => {
  const said = (id: string, text: string) => {
    return { type: "message", id, role: "assistant", content: text };
  };
  const thought = {
    type: "reasoning",
    id: "rs_2",
    summary: [{ type: "summary_text", text: "Hm." }],
  };
  const called = { type: "function_call", id: "fc_2", call_id: "a", name: "look", arguments: "{}" };
  const items = [said("msg_1", "One"), thought, said("msg_2", "Two"), called];
  const read = (replies: Readonly<Record<string, string>>) =>
    dialects.responses
      .decode({ input: items }, { replyOf: (id) => replies[id] })
      .messages.map(({ content }) => content);

  test("are one turn where nothing says otherwise", () => {
    expect(read({})).toEqual(["OneTwo"]);
    expect(read({ msg_1: "r1", rs_2: "r1", msg_2: "r1", fc_2: "r1" })).toEqual(["OneTwo"]);
  });

  test("are two where they stood in different replies", () => {
    expect(read({ msg_1: "r1", rs_2: "r2", msg_2: "r2", fc_2: "r2" })).toEqual(["One", "Two"]);
  });
});
