import { describe, expect, test } from "vitest";
import type { CallForm } from "../call-form.ts";
import type { Reply, ReplyPart } from "../conversation.ts";
import { matchTurn } from "../tree/match-turn.ts";
import { toSentTurn } from "../tree/turn-node.ts";
import { chatDialect } from "./chat.ts";
import { encodeItem } from "./responses-items.ts";
import { responsesDialect } from "./responses.ts";
import { sampleReply, streamOf } from "./sample-reply.fixture.ts";

type CallPart = Extract<ReplyPart, { readonly type: "call" }>;

/** Returns the call of a reply with one call. */
function callOf(form: CallForm, name: string, text: string): CallPart {
  return { type: "call", id: "item_1", callId: "call_1", name, text, form };
}

const patch = callOf("custom", "edit", '{"input":  "*** Begin\\n"}');
const wrong = callOf("custom", "edit", '{"patch": "x"}');
const program = callOf("local-shell", "local_shell", '{"command": ["ls"], "timeout_ms": 9}');
const commands = callOf("shell", "shell", '{"commands": ["ls", "pwd"]}');
const change = callOf("apply-patch", "apply_patch", '{"path": "a", "type": "delete_file"}');
const older = callOf("function-call", "look", '{"a":  1.0}');

const call = { call_id: "call_1", id: "item_1", status: "completed" };

/** Calls with the item of Responses that a client receives for each. */
const items: readonly (readonly [CallPart, object])[] = [
  [patch, { type: "custom_tool_call", ...call, name: "edit", input: "*** Begin\n" }],
  [wrong, { type: "custom_tool_call", ...call, name: "edit", input: '{"patch": "x"}' }],
  [
    program,
    {
      type: "local_shell_call",
      ...call,
      action: { type: "exec", env: {}, command: ["ls"], timeout_ms: 9 },
    },
  ],
  [
    commands,
    {
      type: "shell_call",
      ...call,
      environment: { type: "local" },
      action: { commands: ["ls", "pwd"], timeout_ms: null, max_output_length: null },
    },
  ],
  [change, { type: "apply_patch_call", ...call, operation: { type: "delete_file", path: "a" } }],
];

/** Decodes a reply that the client sends back. */
function cameBack(input: readonly unknown[]) {
  const [message] = responsesDialect.decode({ input }).messages;
  if (message?.role !== "assistant") throw new Error("expected a turn");
  return message;
}

describe("a call of Responses that is not a function call", () => {
  test.each(items)("is encoded in its own form (%#)", (part, item) => {
    const reply = sampleReply(responsesDialect, [part]);
    expect(responsesDialect.encodeReply(reply)).toMatchObject({ output: [item] });
    expect(encodeItem(part, false)).toEqual(item);
  });

  test.each(items)("is decoded as the sampled turn (%#)", (part, item) => {
    const match = matchTurn(cameBack([item]), toSentTurn([part]), "strict");
    expect(match).toEqual({ type: "same", byId: true, notes: [] });
  });

  test("differs from the sampled turn after the client changed it", () => {
    const [, item] = items[0]!;
    const edited = cameBack([{ ...item, input: "*** End\n" }]);
    expect(matchTurn(edited, toSentTurn([patch]), "calls")).toEqual({ type: "edited" });
  });

  test("is streamed with its complete text", () => {
    const events = streamOf(responsesDialect, sampleReply(responsesDialect, [patch]));
    const read = events.map(({ data }) => JSON.parse(data) as Record<string, unknown>);
    expect(read.slice(2).map(({ type }) => type)).toEqual([
      "response.output_item.added",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const place = { item_id: "item_1", output_index: 0 };
    expect(read[2]).toMatchObject({ item: { input: "", status: "in_progress", name: "edit" } });
    expect(read[3]).toMatchObject({ ...place, delta: "*** Begin\n" });
    expect(read[4]).toMatchObject({ ...place, input: "*** Begin\n" });
    expect(read[5]!["item"]).toEqual(items[0]![1]);
    expect(read.map((event) => event["sequence_number"])).toEqual(read.map((_, index) => index));
  });

  test("is streamed as a complete item if it contains an object", () => {
    const events = streamOf(responsesDialect, sampleReply(responsesDialect, [program]));
    const read = events.map(({ data }) => JSON.parse(data) as Record<string, unknown>);
    expect(read.slice(2, -1)).toMatchObject([
      {
        type: "response.output_item.added",
        item: { ...items[2]![1], status: "in_progress" },
      },
      { type: "response.output_item.done", item: items[2]![1] },
    ]);
  });

  test.each<[object, string]>([
    [{ type: "custom_tool_call_output", call_id: "call_1", output: "Done" }, "Done"],
    [
      {
        type: "custom_tool_call_output",
        call_id: "call_1",
        output: [{ type: "input_text", text: "Done" }],
      },
      "Done",
    ],
    [{ type: "local_shell_call_output", id: "call_1", output: '{"output":"a"}' }, '{"output":"a"}'],
    [
      {
        type: "shell_call_output",
        call_id: "call_1",
        output: [
          { stdout: "a", stderr: "", outcome: { type: "exit", exit_code: 0 } },
          { stdout: "", stderr: "b", outcome: { type: "timeout" } },
        ],
      },
      "a\n[exit code 0]\nb\n[timeout]",
    ],
    [
      { type: "apply_patch_call_output", call_id: "call_1", status: "failed", output: "No file" },
      "failed\nNo file",
    ],
  ])("has a result: %j", (item, content) => {
    expect(responsesDialect.decode({ input: [item] }).messages).toEqual([
      { role: "tool", callId: "call_1", content },
    ]);
  });

  test("can be answered by its item's id", () => {
    const result = { type: "local_shell_call_output", id: "item_1", output: "a" };
    const recollection = { item: (id: string) => (id === "item_1" ? items[2]![1] : undefined) };
    expect(responsesDialect.decode({ input: [result] }, recollection).messages).toEqual([
      { role: "tool", callId: "call_1", content: "a" },
    ]);
  });

  test("can be referred to by its item's id", () => {
    const recollection = { item: (id: string) => (id === "item_1" ? items[0]![1] : undefined) };
    const input = ["item_1", "call_1", "fc_9"].map((call_id) => {
      return { type: "function_call_output", call_id, output: "a" };
    });
    const { messages } = responsesDialect.decode({ input }, recollection);
    expect(messages.map((message) => message.role === "tool" && message.callId)).toEqual([
      "call_1",
      "call_1",
      "fc_9",
    ]);
  });
});

function chatMessage(reply: Reply): Record<string, unknown> {
  const { choices } = chatDialect.encodeReply(reply) as { choices: { message: object }[] };
  return choices[0]!.message as Record<string, unknown>;
}

function chunksOf(part: CallPart): readonly object[] {
  return streamOf(chatDialect, sampleReply(chatDialect, [part]))
    .filter(({ data }) => data !== "[DONE]")
    .flatMap(({ data }) => (JSON.parse(data) as { choices: { delta: object }[] }).choices);
}

describe("a call of Chat Completions that is not a function call", () => {
  test("is encoded with its text, and decoded as the sampled turn", () => {
    const message = chatMessage(sampleReply(chatDialect, [patch]));
    expect(message).toEqual({
      role: "assistant",
      content: null,
      refusal: null,
      tool_calls: [
        { id: "call_1", type: "custom", custom: { name: "edit", input: "*** Begin\n" } },
      ],
    });
    const [back] = chatDialect.decode({ messages: [message] }).messages;
    expect(back).toMatchObject({
      calls: [{ id: "call_1", name: "edit", argumentsText: '{"input":"*** Begin\\n"}' }],
    });
    const match = matchTurn(back as never, toSentTurn([patch]), "strict");
    expect(match).toEqual({ type: "same", byId: true, notes: [] });
    expect(chunksOf(patch).slice(1, -1)).toMatchObject([
      {
        delta: {
          tool_calls: [
            { index: 0, id: "call_1", type: "custom", custom: { name: "edit", input: "" } },
          ],
        },
      },
      { delta: { tool_calls: [{ index: 0, custom: { input: "*** Begin\n" } }] } },
    ]);
  });

  test("is encoded as `function_call`, and decoded as the sampled turn", () => {
    const part = { ...older, callId: "look" };
    const reply = sampleReply(chatDialect, [part]);
    const message = chatMessage(reply);
    expect(message).toEqual({
      role: "assistant",
      content: null,
      refusal: null,
      function_call: { name: "look", arguments: '{"a":  1.0}' },
    });
    expect(chatDialect.encodeReply(reply)).toMatchObject({
      choices: [{ finish_reason: "function_call" }],
    });
    const result = { role: "function", name: "look", content: "21" };
    const { messages } = chatDialect.decode({ messages: [message, result] });
    expect(messages).toMatchObject([
      { calls: [{ id: "look", name: "look", argumentsText: '{"a":  1.0}' }] },
      { role: "tool", callId: "look", content: "21" },
    ]);
    const match = matchTurn(messages[0] as never, toSentTurn([part]), "strict");
    expect(match).toEqual({ type: "same", byId: true, notes: [] });
    const deltas = chunksOf(part).slice(1);
    expect(deltas).toMatchObject([
      { delta: { function_call: { name: "look", arguments: "" } } },
      { delta: { function_call: { arguments: '{"a": ' } } },
      { delta: { function_call: { arguments: " 1.0}" } } },
      { delta: {}, finish_reason: "function_call" },
    ]);
  });

  test("is refused in a history if its type is unknown", () => {
    const calls = [{ id: "c", type: "added_2027", added_2027: {} }];
    expect(() =>
      chatDialect.decode({ messages: [{ role: "assistant", tool_calls: calls }] }),
    ).toThrow('Cannot read messages[0].tool_calls[0].type: there is no call of type "added_2027"');
  });
});
