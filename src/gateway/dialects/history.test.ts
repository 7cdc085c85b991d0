import { describe, expect, test } from "vitest";
import { messagesOf, noHistory } from "./history.ts";
import { dialects } from "./registry.ts";

const call = (id: string) => ({ id, name: "look", argumentsText: "{}" });

const user = { role: "user", content: "Go" };

describe("parallel calls in separate messages form one turn", () => {
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

test("turns without a call, or with results, stay separate", () => {
  const messages = [
    user,
    { role: "assistant", content: "One" },
    { role: "assistant", content: "Two" },
    {
      role: "assistant",
      content: "Calling",
      tool_calls: [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "a", content: "A" },
    { role: "assistant", content: "Three" },
  ];
  const read = dialects.chat.decode({ messages }).messages;
  expect(read.map(({ role, content }) => `${role} ${content}`)).toEqual([
    "user Go",
    "assistant One",
    "assistant Two",
    "assistant Calling",
    "tool A",
    "assistant Three",
  ]);
});

describe("the text of a turn and its calls in separate messages", () => {
  const spoken = { role: "assistant", content: "I look." };
  const called = {
    role: "assistant",
    content: null,
    reasoning_content: "Hm.",
    tool_calls: [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }],
  };
  const messages = [user, spoken, called, { role: "tool", tool_call_id: "a", content: "A" }];
  const roles = (textBeside?: (id: string) => string | undefined) => {
    const recollection = textBeside === undefined ? {} : { textBeside };
    return dialects.chat.decode({ messages }, recollection).messages.map(({ role }) => role);
  };

  test("form one turn of Chat Completions", () => {
    const read = dialects.chat.decode({ messages }).messages;
    const turn = { content: "I look.", reasoning: "Hm.", calls: [call("a")], marks: [] };
    expect(read[1]).toEqual({ role: "assistant", ...turn });
    expect(roles((id) => (id === "a" ? "I look. " : undefined))).toEqual(read.map((m) => m.role));
  });

  test("form two turns of Chat Completions if the calls were sampled without the text", () => {
    expect(roles(() => "")).toEqual(["user", "assistant", "assistant", "tool"]);
  });

  test("form one turn of Messages, which joins messages of one role", () => {
    const read = dialects.messages.decode({
      messages: [
        user,
        spoken,
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm." },
            { type: "tool_use", id: "a", name: "look", input: {} },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "A" }] },
      ],
    }).messages;
    const turn = { content: "I look.", reasoning: "Hm.", calls: [call("a")], marks: [] };
    expect(read[1]).toEqual({ role: "assistant", ...turn });
    expect(read).toHaveLength(3);
  });
});

describe("results of Chat Completions without an id", () => {
  const called = (id: string | undefined, name: string) => {
    return { id, type: "function", function: { name, arguments: "{}" } };
  };
  const result = (content: string, name?: string) => {
    return { role: "tool", tool_call_id: "", name, content };
  };
  const idsOf = (calls: readonly object[], results: readonly object[]) => {
    const messages = [user, { role: "assistant", content: null, tool_calls: calls }, ...results];
    return dialects.chat
      .decode({ messages })
      .messages.flatMap((message) => (message.role === "tool" ? [message.callId] : []));
  };
  const ofTwo = [called("a", "look"), called("b", "clock"), called("c", "look")];

  test("belong to the calls of the tools that they name, in any order", () => {
    const results = [result("12", "clock"), result("A", "look"), result("C", "look")];
    expect(idsOf(ofTwo, results)).toEqual(["b", "a", "c"]);
    const bare = ofTwo.map((each) => ({ ...each, id: undefined }));
    expect(idsOf(bare, results)).toEqual(["#1", "#0", "#2"]);
    const empty = ofTwo.map((each) => ({ ...each, id: "" }));
    expect(idsOf(empty, results)).toEqual(["#1", "#0", "#2"]);
  });

  test("belong to the calls in order if they name no tool", () => {
    const answered = { role: "tool", tool_call_id: "a", content: "A" };
    expect(idsOf(ofTwo, [answered, result("12"), result("C")])).toEqual(["a", "b", "c"]);
  });

  test("belong to calls in separate messages, of the newest turn only", () => {
    const turn = (...calls: readonly object[]) => {
      return { role: "assistant", content: null, tool_calls: calls };
    };
    const messages = [
      user,
      turn(called("x", "look")),
      { role: "user", content: "Stop" },
      turn(called("a", "look")),
      turn(called("b", "clock")),
      result("12", "clock"),
      result("A", "look"),
      result("?", "sleep"),
    ];
    const read = dialects.chat.decode({ messages }).messages;
    expect(read.flatMap((each) => (each.role === "tool" ? [each.callId] : []))).toEqual([
      "b",
      "a",
      "sleep",
    ]);
    // Reads the messages in two steps, which must give the same result.
    const readHistory: typeof dialects.chat.readHistory = (...given) =>
      dialects.chat.readHistory(...given);
    for (let split = 0; split <= messages.length; split++) {
      const before = readHistory(messages.slice(0, split), {}, noHistory);
      expect(messagesOf(readHistory(messages.slice(split), {}, before))).toEqual(read);
    }
  });
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

  test("form one turn by default", () => {
    expect(read({})).toEqual(["OneTwo"]);
    expect(read({ msg_1: "r1", rs_2: "r1", msg_2: "r1", fc_2: "r1" })).toEqual(["OneTwo"]);
  });

  test("are separated by newlines if they are adjacent", () => {
    const input = [said("m1", "One"), said("m2", "Two"), thought, said("m3", "Three"), called];
    const [turn, ...others] = dialects.responses.decode({ input }).messages;
    expect(turn?.content).toBe("One\nTwoThree");
    expect(others).toEqual([]);
    const readHistory: typeof dialects.responses.readHistory = (...given) =>
      dialects.responses.readHistory(...given);
    for (let split = 0; split <= input.length; split++) {
      const before = readHistory(input.slice(0, split), {}, noHistory);
      expect(messagesOf(readHistory(input.slice(split), {}, before))).toEqual([turn]);
    }
  });

  test("form two turns if they come from different replies", () => {
    expect(read({ msg_1: "r1", rs_2: "r2", msg_2: "r2", fc_2: "r2" })).toEqual(["One", "Two"]);
  });
});
