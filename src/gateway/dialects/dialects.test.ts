import { describe, expect, test } from "vitest";
import { ClientError, type ClientErrorKind } from "../client-error.ts";
import { chatDialect } from "./chat.ts";
import { messagesDialect } from "./messages.ts";
import { dialects } from "./registry.ts";
import { responsesDialect } from "./responses.ts";
import { askedFor, sampleParts, sampleReply, streamOf } from "./sample-reply.fixture.ts";
import { writeJsonWith } from "../../environment/plain-text.ts";
import { rememberExact, writtenText } from "../../json/exact-json.ts";

/** Returns the kind and message of a decoder's refusal. */
function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof ClientError) return `${error.kind} ${error.message}`;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("a stream of Chat Completions", () => {
  const events = streamOf(chatDialect, sampleReply(chatDialect)).map(({ data }) => data);
  const chunks = events.slice(0, -1).map((data) => JSON.parse(data) as Record<string, unknown>);
  const deltas = chunks.flatMap(({ choices }) => choices as { delta: object }[]);

  test("starts with the role, and streams reasoning, text and calls", () => {
    expect(deltas.map(({ delta }) => delta)).toEqual([
      { role: "assistant", content: "" },
      { reasoning_content: "I shoul" },
      { reasoning_content: "d look." },
      { content: "Let me" },
      { content: " look." },
      {
        tool_calls: [
          { index: 0, id: "call_1", type: "function", function: { name: "look", arguments: "" } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"a": ' } }] },
      { tool_calls: [{ index: 0, function: { arguments: " 1.0}" } }] },
      {
        tool_calls: [
          { index: 1, id: "call_2", type: "function", function: { name: "look", arguments: "" } },
        ],
      },
      { tool_calls: [{ index: 1, function: { arguments: "{" } }] },
      { tool_calls: [{ index: 1, function: { arguments: "}" } }] },
      {},
    ]);
  });

  test("ends with the finish reason, the requested usage, and [DONE]", () => {
    expect(deltas.at(-1)).toMatchObject({ finish_reason: "tool_calls" });
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
    });
    expect(events.at(-1)).toBe("[DONE]");
    for (const chunk of chunks) {
      const object = "chat.completion.chunk";
      expect(chunk).toMatchObject({
        id: "reply_1",
        object,
        created: 1_700_000_000,
        model: "policy",
      });
    }
  });
});

describe("a stream of Messages", () => {
  const events = streamOf(messagesDialect, sampleReply(messagesDialect));

  test("starts and stops each block, and names each event", () => {
    const block = ["content_block_start", "content_block_delta", "content_block_delta"];
    expect(events.map(({ name }) => name)).toEqual([
      "message_start",
      "ping",
      ...block,
      "content_block_delta",
      "content_block_stop",
      ...block,
      "content_block_stop",
      ...block,
      "content_block_stop",
      ...block,
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    for (const { name, data } of events) expect(JSON.parse(data)).toMatchObject({ type: name });
  });

  test("has the usage at both ends, the signature, and empty input at a call's start", () => {
    const read = events.map(({ data }) => JSON.parse(data) as Record<string, unknown>);
    expect(read[0]).toMatchObject({ message: { usage: { input_tokens: 100, output_tokens: 1 } } });
    expect(read.at(-2)).toMatchObject({
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 20 },
    });
    expect(read[5]).toMatchObject({ delta: { type: "signature_delta", signature: "sig_1" } });
    expect(read[11]).toMatchObject({
      content_block: { type: "tool_use", id: "call_1", name: "look", input: {} },
    });
    expect(read[12]).toMatchObject({ delta: { type: "input_json_delta", partial_json: '{"a": ' } });
  });
});

describe("a stream of Responses", () => {
  const events = streamOf(responsesDialect, sampleReply(responsesDialect));
  const read = events.map(({ data }) => JSON.parse(data) as Record<string, unknown>);

  test("contains all events in numbered order", () => {
    const spoken = (kind: string) => [
      "response.output_item.added",
      "response.content_part.added",
      `response.${kind}.delta`,
      `response.${kind}.delta`,
      `response.${kind}.done`,
      "response.content_part.done",
      "response.output_item.done",
    ];
    const called = [
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
    ];
    expect(events.map(({ name }) => name)).toEqual([
      "response.created",
      "response.in_progress",
      ...spoken("reasoning_text"),
      ...spoken("output_text"),
      ...called,
      ...called,
      "response.completed",
    ]);
    expect(read.map((event) => event["sequence_number"])).toEqual(read.map((_, index) => index));
    expect(read.map((event) => event["type"])).toEqual(events.map(({ name }) => name));
  });

  test("ends with the same reply as without a stream", () => {
    const whole = responsesDialect.encodeReply(sampleReply(responsesDialect));
    expect(read.at(-1)!["response"]).toEqual(JSON.parse(JSON.stringify(whole)));
    expect(whole).toMatchObject({ status: "completed", usage: { total_tokens: 120 } });
  });
});

describe("a reply that is sent back", () => {
  test("is decoded as the same turn by Chat Completions", () => {
    const reply = chatDialect.encodeReply(sampleReply(chatDialect)) as {
      choices: { message: object }[];
    };
    expect(chatDialect.decode({ messages: [reply.choices[0]!.message] }).messages).toEqual([
      {
        role: "assistant",
        content: "Let me look.",
        reasoning: "I should look.",
        marks: [],
        calls: [
          { id: "call_1", name: "look", argumentsText: '{"a":  1.0}' },
          { id: "call_2", name: "look", argumentsText: "{}" },
        ],
      },
    ]);
  });

  test("is decoded as the same turn by Messages, with arguments as values", () => {
    const reply = messagesDialect.encodeReply(sampleReply(messagesDialect));
    const text = writeJsonWith(reply, writtenText);
    expect(text).toContain('"input":{"a":  1.0}');
    const said = JSON.parse(text) as { readonly content: unknown };
    rememberExact(said, text);
    const messages = [
      { role: "assistant", content: said.content },
      { role: "user", content: "Go on" },
    ];
    expect(messagesDialect.decode({ messages }).messages[0]).toEqual({
      role: "assistant",
      content: "Let me look.",
      reasoning: "I should look.",
      calls: [
        { id: "call_1", name: "look", argumentsText: '{"a":1.0}' },
        { id: "call_2", name: "look", argumentsText: "{}" },
      ],
      marks: ["sig_1"],
    });
  });

  test("is decoded as one turn by Responses, from its items or their ids", () => {
    const { output } = responsesDialect.encodeReply(sampleReply(responsesDialect)) as {
      output: { id: string }[];
    };
    const whole = responsesDialect.decode({ input: output });
    expect(whole.messages).toEqual([
      {
        role: "assistant",
        content: "Let me look.",
        reasoning: "I should look.",
        calls: [
          { id: "call_1", name: "look", argumentsText: '{"a":  1.0}' },
          { id: "call_2", name: "look", argumentsText: "{}" },
        ],
        marks: ["rs_1", "msg_1", "fc_1", "fc_2"],
      },
    ]);
    const references = output.map(({ id }) => ({ type: "item_reference", id }));
    const item = (id: string) => output.find((each) => each.id === id);
    const named = responsesDialect.decode({ input: references }, { item });
    expect(named.messages).toEqual(whole.messages);
  });
});

describe("decoders", () => {
  test("ignore members without effect: names, caches, nulls, copies in parts", () => {
    const plain = chatDialect.decode({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "assistant", content: "Hi" },
      ],
    });
    const adorned = chatDialect.decode({
      messages: [
        {
          role: "developer",
          content: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
        },
        {
          role: "assistant",
          name: "model",
          refusal: null,
          annotations: [],
          audio: null,
          content: [{ type: "text", text: "Hi", role: "assistant", tool_calls: [] }],
          tool_calls: null,
        },
      ],
    });
    expect(adorned.messages).toEqual(plain.messages);
  });

  test("read a null content, and members that a protocol leaves out, as an empty text", () => {
    const call = { id: "a", type: "function", function: { name: "look", arguments: "{}" } };
    const chat = {
      messages: [
        { role: "user", content: null },
        { role: "assistant", tool_calls: [call] },
      ],
    };
    expect(chatDialect.decode(chat).messages.map(({ content }) => content)).toEqual(["", ""]);
    const result = { type: "tool_result", tool_use_id: "a" };
    const { messages } = messagesDialect.decode({
      messages: [{ role: "user", content: [result] }],
    });
    expect(messages).toEqual([{ role: "tool", callId: "a", content: "" }]);
    const thought = { type: "reasoning", id: "r", summary: [] };
    const { messages: responses } = responsesDialect.decode({
      input: [thought, { role: "user", content: "Hi" }],
    });
    expect(responses.at(-1)).toEqual({ role: "user", content: "Hi" });
  });

  test("split a user message of Messages into results and text", () => {
    const { messages } = messagesDialect.decode({
      system: [
        { type: "text", text: "One." },
        { type: "text", text: "Two.", cache_control: { type: "ephemeral" } },
      ],
      messages: [
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "toolu_1",
              content: [{ type: "text", text: "21" }],
            },
            { type: "text", text: "Go on" },
          ],
        },
      ],
    });
    expect(messages).toEqual([
      { role: "system", content: "One.\nTwo." },
      { role: "tool", callId: "toolu_1", content: "21" },
      { role: "user", content: "Go on" },
    ]);
  });

  test("read empty arguments of a call as an empty object", () => {
    const called = { name: "look", arguments: "" };
    const decoded = [
      chatDialect.decode({
        messages: [
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "a", type: "", function: called }],
          },
        ],
      }),
      responsesDialect.decode({ input: [{ type: "function_call", call_id: "a", ...called }] }),
    ];
    for (const { messages } of decoded) {
      const calls = [{ id: "a", name: "look", argumentsText: "{}" }];
      expect(messages).toEqual([{ role: "assistant", content: "", calls, marks: [] }]);
    }
  });

  test.each([
    [{ reasoning_details: [{ type: "reasoning.text", text: "Hm" }, { text: "." }] }, "Hm."],
    [{ reasoning_details: [{ type: "reasoning.summary", summary: "Hm." }] }, "Hm."],
    [{ reasoning_details: [{ type: "reasoning.encrypted", data: "x" }, null, 1] }, undefined],
    [{ thinking_blocks: [{ type: "thinking", thinking: "Hm." }] }, "Hm."],
    [{ reasoning_content: "", reasoning: "Hm.", reasoning_details: [{ text: "x" }] }, "Hm."],
    [{ reasoning: { effort: "low" } }, undefined],
  ])("read what an assistant of Chat Completions thought from %j", (members, reasoning) => {
    const { messages } = chatDialect.decode({
      messages: [{ role: "assistant", content: "Hi", ...members }],
    });
    const thought = reasoning === undefined ? {} : { reasoning };
    expect(messages).toEqual([
      { role: "assistant", content: "Hi", ...thought, calls: [], marks: [] },
    ]);
  });

  test("accept JSON text as a call's input, unless the call was sampled here", () => {
    const read = (input: unknown, textBeside = (): string | undefined => undefined) => {
      const block = { type: "tool_use", id: "a", name: "look", input };
      const messages = [
        { role: "assistant", content: [block] },
        { role: "user", content: "Hi" },
      ];
      const requested = messagesDialect.decode({ messages }, { textBeside });
      return requested.messages.flatMap((message) =>
        message.role === "assistant" ? message.calls.map((call) => call.argumentsText) : [],
      );
    };
    expect(read('{"n": 1.0}')).toEqual(['{"n": 1.0}']);
    expect(read("")).toEqual(["{}"]);
    expect(read(null)).toEqual(["{}"]);
    expect(read("near")).toEqual(['"near"']);
    expect(read('["near"]')).toEqual(['"[\\"near\\"]"']);
    expect(read('{"n": 1}', () => "")).toEqual(['"{\\"n\\": 1}"']);
  });

  test("show an error result of Messages without text as an error", () => {
    const result = (more: object) => ({ type: "tool_result", tool_use_id: "a", ...more });
    const { messages } = messagesDialect.decode({
      messages: [
        {
          role: "user",
          content: [
            result({ is_error: true }),
            result({ is_error: true, content: "No file" }),
            result({ content: "" }),
          ],
        },
      ],
    });
    expect(messages.map(({ content }) => content)).toEqual(["Error", "No file", ""]);
  });

  test("prepend the conversation of an earlier reply without its instructions", () => {
    const earlier = [{ role: "user", content: "Hi" }] as const;
    const requested = responsesDialect.decode(
      { previous_response_id: "resp_1", instructions: "Be brief.", input: "Go on" },
      { conversationOf: (id) => (id === "resp_1" ? earlier : undefined) },
    );
    expect(requested.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
      { role: "user", content: "Go on" },
    ]);
  });

  test("do not repeat instructions that an earlier conversation starts with", () => {
    const system = { role: "system", content: "Be brief." } as const;
    const read = (instructions: string) =>
      responsesDialect
        .decode(
          { previous_response_id: "chatcmpl-1", instructions, input: [system] },
          { conversationOf: () => [system, { role: "user", content: "Hi" }] },
        )
        .messages.map(({ content }) => content);
    expect(read("Be brief.")).toEqual(["Be brief.", "Hi", "Be brief."]);
    expect(read("Be long.")).toEqual(["Be long.", "Be brief.", "Hi", "Be brief."]);
  });

  test("flatten names of namespaced tools, and encode calls with the client's names", () => {
    const look = { type: "function", name: "look", parameters: { type: "object" } };
    const group = { type: "namespace", name: "mcp__shop", tools: [look] };
    const call = {
      type: "function_call",
      call_id: "call_1",
      name: "look",
      namespace: "mcp__shop",
      arguments: "{}",
    };
    const requested = responsesDialect.decode({
      tools: [{ ...look, name: "own" }, group, { ...group, name: "mcp__map__" }],
      input: ["Hi", call].map((item) =>
        typeof item === "string" ? { role: "user", content: item } : item,
      ),
    });
    const names = ["own", "mcp__shop__look", "mcp__map__look"];
    expect(requested.tools.map(({ name }) => name)).toEqual(names);
    expect(requested.messages[1]).toMatchObject({ calls: [{ name: "mcp__shop__look" }] });
    const plain = responsesDialect.decode({ input: [{ ...call, namespace: "functions" }] });
    expect(plain.messages).toMatchObject([{ calls: [{ name: "look" }] }]);
    const parts = names.map((name, index) => ({
      type: "call" as const,
      id: `fc_${index}`,
      callId: `call_${index}`,
      name,
      text: "{}",
    }));
    const start = { id: "resp_1", createdAtMs: 0, promptTokenCount: 1, requested };
    const usage = { promptTokenCount: 1, cachedTokenCount: 0, sampledTokenCount: 1 };
    const reply = { start, parts, finish: { type: "calls" as const }, usage };
    const output = [
      { name: "own" },
      { name: "look", namespace: "mcp__shop" },
      { name: "look", namespace: "mcp__map__" },
    ];
    expect(responsesDialect.encodeReply(reply)).toMatchObject({ output });
    const items = streamOf(responsesDialect, reply)
      .filter(({ name }) => name === "response.output_item.done")
      .map(({ data }) => (JSON.parse(data) as { item: object }).item);
    expect(items).toMatchObject(output);
  });

  test("read parameters, choices and formats", () => {
    expect(
      askedFor(chatDialect, {
        temperature: 0.5,
        top_p: 0.9,
        seed: 3,
        max_tokens: 7,
        max_completion_tokens: 5,
        stop: "END",
        tool_choice: { type: "function", function: { name: "look" } },
        response_format: { type: "json_object" },
        user: "me",
        logit_bias: null,
      }),
    ).toMatchObject({
      sampling: { temperature: 0.5, topP: 0.9, seed: 3 },
      maxTokens: 5,
      stop: ["END"],
      toolChoice: { type: "named", name: "look" },
      textFormat: { type: "json-object" },
      ignoredFields: ["user", "max_tokens"],
    });
    expect(
      askedFor(chatDialect, { max_tokens: 5, max_completion_tokens: 5 }).ignoredFields,
    ).toEqual([]);
    expect(
      askedFor(messagesDialect, { tool_choice: { type: "any" }, stop_sequences: ["A", ""] }),
    ).toMatchObject({ toolChoice: { type: "required" }, stop: ["A"] });
  });

  test.each([
    [
      "chat",
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }] },
      'messages[0].content[0]: a part of type "image_url" cannot be shown to the policy; send its content as text',
    ],
    [
      "chat",
      { messages: [{ role: "user", content: { type: "text", text: "Hi" } }] },
      "messages[0].content: expected text or a list of parts",
    ],
    [
      "chat",
      { messages: [{ role: "assistant", content: "{" }], continue_final_message: true },
      "continue_final_message: the policy's turn cannot be prefilled; leave this out, and end with a user message",
    ],
    [
      "chat",
      { messages: [{ role: "assistant", content: "{", prefix: true }] },
      "messages[0].prefix: the policy's turn cannot be prefilled; leave this out, and end with a user message",
    ],
    [
      "chat",
      {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "{", partial: true },
        ],
      },
      "messages[1].partial: the policy's turn cannot be prefilled; leave this out, and end with a user message",
    ],
    ...(
      [
        ["chat", "system", { messages: [] }],
        ["chat", "instructions", { messages: [] }],
        ["messages", "instructions", { messages: [] }],
        ["responses", "system", { input: "Hi" }],
      ] as const
    ).map(
      ([name, field, body]) =>
        [
          name,
          { ...body, [field]: "Be brief." },
          `${field}: this protocol has no such field; send its text as a message`,
        ] as const,
    ),
    ...(
      [
        ["chat", { messages: [{ role: "user", text: "Hi" }] }, "messages[0].content"],
        ["chat", { messages: [{ role: "system" }] }, "messages[0].content"],
        ["chat", { messages: [{ role: "tool", tool_call_id: "a" }] }, "messages[0].content"],
        ["messages", { messages: [{ role: "user" }] }, "messages[0].content"],
        ["messages", { messages: [{ role: "assistant" }] }, "messages[0].content"],
        ["responses", { input: [{ role: "user", text: "Hi" }] }, "input[0].content"],
        ["responses", { input: [{ role: "assistant" }] }, "input[0].content"],
        [
          "responses",
          { input: [{ type: "function_call_output", call_id: "a", content: "1" }] },
          "input[0].output",
        ],
      ] as const
    ).map(
      ([name, body, place]) =>
        [name, body, `${place}: it is missing; expected text or a list of parts`] as const,
    ),
    [
      "responses",
      { input: [{ type: "apply_patch_call_output", call_id: "a" }] },
      "input[0].output: it is missing; expected text",
    ],
    ["chat", { messages: {} }, "messages: expected a list, not an object"],
    ["chat", { messages: [{ role: "robot" }] }, 'messages[0].role: there is no role "robot"'],
    [
      "chat",
      { messages: [], n: 2 },
      "n: a request samples one turn; send several requests for several turns",
    ],
    ["chat", { messages: [], max_tokens: 0 }, "max_tokens: expected a whole number from 1 on"],
    [
      "chat",
      { messages: [], max_tokens: 1e18 },
      "max_tokens: expected a whole number from 1 to 9007199254740991",
    ],
    [
      "chat",
      { messages: [], seed: 2 ** 53 },
      "seed: expected a whole number from -9007199254740991 to 9007199254740991",
    ],
    [
      "messages",
      {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "{" },
        ],
      },
      "messages[1]: the policy's turn cannot be prefilled; end with a user message",
    ],
    [
      "responses",
      { input: [{ type: "item_reference", id: "msg_9" }] },
      'input[0].id: no item of this session has the id "msg_9"',
    ],
    [
      "responses",
      { previous_response_id: "resp_9" },
      'previous_response_id: no reply of this session has the id "resp_9"',
    ],
  ] as const)("%s: name the place of a request's fault (%#)", (name, body, message) => {
    expect(refusal(() => dialects[name].decode(body))).toBe(`invalid Cannot read ${message}`);
  });
});

describe("errors", () => {
  const kinds: readonly ClientErrorKind[] = ["too-long", "finished", "overloaded", "unavailable"];

  test("are encoded in the form of each dialect's clients", () => {
    const errors = (["chat", "messages"] as const).map((name) =>
      kinds.map((kind) => {
        const body = dialects[name].encodeError(new ClientError(kind, "why")) as {
          error: { type: string; code?: string };
        };
        return [body.error.type, body.error.code].filter((word) => word !== undefined).join(" ");
      }),
    );
    expect(errors).toEqual([
      [
        "invalid_request_error context_length_exceeded",
        "turnwright_finished session_finished",
        "rate_limit_error rate_limit_exceeded",
        "server_error engine_unavailable",
      ],
      ["invalid_request_error", "turnwright_finished", "overloaded_error", "api_error"],
    ]);
    expect(kinds.map((kind) => new ClientError(kind, "").status)).toEqual([400, 410, 429, 503]);
  });

  test("end a stream that has started", () => {
    const error = new ClientError("unavailable", "The engine is gone");
    const endings = Object.values(dialects).map((dialect) => {
      const writer = dialect.createWriter(sampleReply(dialect, sampleParts).start);
      writer.start();
      return writer.fail(error).split("\n")[0]!.slice(0, 60);
    });
    expect(endings).toEqual([
      'data: {"error":{"message":"The engine is gone","type":"serve',
      "event: response.failed",
      "event: error",
    ]);
  });
});
