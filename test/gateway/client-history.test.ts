import { describe, expect, test } from "vitest";
import { callTemplates, templateRenderer } from "../../src/gateway/turn/call-templates.fixture.ts";
import { openTestGateway } from "./client-history.fixture.ts";

const look = (at: string): string =>
  `<tool_call>\n{"name": "look", "arguments": {"at": "${at}"}}\n</tool_call>`;

const parameters = { type: "object", properties: { at: { type: "string" } } };

describe("a sampled turn with two calls", () => {
  test("continues if a client of Chat Completions sends each call in a message of its own", async () => {
    await using talk = await openTestGateway([`${look("door")}\n${look("wall")}`, "done"]);
    const tools = [{ type: "function", function: { name: "look", parameters } }];
    const go = { role: "user", content: "go" };
    const { body } = await talk.chat({ messages: [go], tools });
    const calls = body.choices[0].message.tool_calls;
    await talk.chat({
      tools,
      messages: [
        go,
        ...calls.map((call) => ({ role: "assistant", content: null, tool_calls: [call] })),
        { role: "tool", tool_call_id: calls[1]!.id, content: "B" },
        { role: "tool", tool_call_id: calls[0]!.id, content: "A" },
      ],
    });
    const [begun, continued] = await talk.prompts();
    const sampled = `${look("door")}\n${look("wall")}\n`;
    expect(continued).toBe(`${begun}${sampled}tool\nA\ntool\nB\nassistant\n`);
    expect(talk.counts()).toMatchObject({ continuedCount: 1, notes: { "results-reordered": 1 } });
  });

  test("continues if a client of Chat Completions or Messages sends text and call one by one", async () => {
    const written = `I look.${look("door")}`;
    const go = { role: "user", content: "go" };
    await using chat = await openTestGateway([written, "done"]);
    const tools = [{ type: "function", function: { name: "look", parameters } }];
    const { body } = await chat.chat({ messages: [go], tools });
    const calls = body.choices[0].message.tool_calls;
    await chat.chat({
      tools,
      messages: [
        go,
        { role: "assistant", content: "I look." },
        { role: "assistant", content: null, tool_calls: calls },
        { role: "tool", tool_call_id: calls[0]!.id, content: "A" },
      ],
    });
    await using messages = await openTestGateway([written, "done"]);
    const offered = [{ name: "look", input_schema: parameters }];
    const reply = await messages.messages({ messages: [go], tools: offered });
    const { content } = reply.body as unknown as { content: readonly { readonly id: string }[] };
    await messages.messages({
      tools: offered,
      messages: [
        go,
        ...content.map((block) => ({ role: "assistant", content: [block] })),
        { role: "user", content: [{ type: "tool_result", tool_use_id: content[1]!.id }] },
      ],
    });
    const rest = { continuedCount: 1, roots: { first: 1 } };
    expect([chat.counts(), messages.counts()]).toMatchObject([rest, rest]);
  });

  test("continues if text is between the calls in Responses", async () => {
    const written = `${look("door")}\nAnd then\n${look("wall")}`;
    await using talk = await openTestGateway([written, "done"]);
    const tools = [{ type: "function", name: "look", parameters }];
    const go = { role: "user", content: "go" };
    const { body } = await talk.responses({ input: [go], tools });
    const called = body.output.filter((item): item is { type: string; call_id: string } => {
      return (item as { type: string }).type === "function_call";
    });
    const results = called.map(({ call_id }, place) => {
      return { type: "function_call_output", call_id, output: `result ${place}` };
    });
    const [first, second] = called;
    const said = { type: "message", role: "assistant", content: "And then" };
    await talk.responses({ tools, input: [go, first!, said, second!, ...results] });
    const [begun, continued] = await talk.prompts();
    expect(continued).toBe(`${begun}${written}\ntool\nresult 0\ntool\nresult 1\nassistant\n`);
    expect(talk.counts()).toMatchObject({ continuedCount: 1, roots: { first: 1 } });
  });

  test("is shown under the ids that the policy wrote, once a root begins with it", async () => {
    const written =
      `<|tool_calls_section_begin|><|tool_call_begin|>functions.look:4<|tool_call_argument_begin|>{}` +
      `<|tool_call_end|><|tool_calls_section_end|>`;
    const renderer = templateRenderer(callTemplates.printing);
    await using talk = await openTestGateway([written, "done"], { parser: "kimi_k2", renderer });
    const tools = [{ type: "function", function: { name: "look", parameters } }];
    const go = { role: "user", content: "go" };
    const { body } = await talk.chat({ messages: [go], tools });
    const [call] = body.choices[0].message.tool_calls;
    const result = { role: "tool", tool_call_id: call!.id, content: "A" };
    const summary = { role: "user", content: "in short" };
    const back = { role: "assistant", content: null, tool_calls: [call] };
    await talk.chat({ messages: [summary, back, result], tools });
    expect((await talk.prompts())[1]).toBe(
      "user: in short\nassistant: <functions.look:4|look{}>\nresult functions.look:4 look A\nassistant:",
    );
    expect(talk.counts().roots).toEqual({ first: 1, "moved-turn": 1 });
  });
});

describe("instructions of Responses", () => {
  const none = [
    ["are absent", {}],
    ["are empty", { instructions: "" }],
    ["are null", { instructions: null }],
  ] as const;

  test.each(none)("that %s leave the conversation unchanged", async (_, fields) => {
    await using talk = await openTestGateway(["Hello", "Ann"]);
    const { body } = await talk.responses({ input: "I am Ann.", ...fields });
    const { status } = await talk.responses({
      input: "Who am I?",
      previous_response_id: body.id,
      ...fields,
    });
    expect(status).toBe(200);
    expect((await talk.prompts())[1]).toBe(
      "user\nI am Ann.\nassistant\nHello\nuser\nWho am I?\nassistant\n",
    );
    expect(talk.counts()).toMatchObject({ continuedCount: 1, roots: { first: 1 } });
  });

  test.each([...none, ["are others", { instructions: "Be long." }]] as const)(
    "replace the earlier ones if they %s",
    async (_, fields) => {
      await using talk = await openTestGateway(["Hello", "Ann", "Bye"]);
      const first = await talk.responses({ input: "I am Ann.", instructions: "Be brief." });
      const second = await talk.responses({
        input: "Who am I?",
        previous_response_id: first.body.id,
        ...fields,
      });
      await talk.responses({ input: "Bye", previous_response_id: second.body.id, ...fields });
      const system = "instructions" in fields && fields.instructions ? "system\nBe long.\n" : "";
      const [, changed, further] = await talk.prompts();
      expect(changed).toBe(
        `${system}user\nI am Ann.\nassistant\nHello\nuser\nWho am I?\nassistant\n`,
      );
      expect(further).toBe(`${changed}Ann\nuser\nBye\nassistant\n`);
    },
  );
});

describe("a conversation that another server keeps", () => {
  test.each([
    [
      { conversation: "conv_1" },
      "Cannot read conversation: conversations are not stored here; send the items in input, " +
        "or continue with previous_response_id",
    ],
    [
      { prompt: { id: "pmpt_1" } },
      "Cannot read prompt: prompts are not stored here; send the text in instructions or input",
    ],
  ])("is refused: %j", async (fields, message) => {
    await using talk = await openTestGateway(["Hello"]);
    const refused = await talk.responses({ input: "Hi", ...fields });
    expect([refused.status, refused.body.error?.message]).toEqual([400, message]);
    const answered = await talk.responses({ input: "Hi", conversation: null, prompt: null });
    expect(answered.status).toBe(200);
  });
});

describe("a message that cannot be shown", () => {
  const hi = { role: "user", content: "Hi" };
  const odd = [{ type: "hologram", text: "Hi" }];

  test.each([
    ["chat", { messages: [{ role: "user", content: odd }] }, { messages: [hi] }],
    ["messages", { messages: [{ role: "user", content: odd }] }, { messages: [hi] }],
    ["responses", { input: [{ role: "user", content: odd }] }, { input: [hi] }],
  ] as const)("is refused in %s, and the session continues", async (dialect, refused, fine) => {
    await using talk = await openTestGateway(["Hello"]);
    for (let time = 0; time < 3; time++) expect((await talk[dialect](refused)).status).toBe(400);
    expect((await talk[dialect](fine)).status).toBe(200);
    const { outcome, stopReason } = await talk.end();
    expect({ outcome, stopReason }).toEqual({ outcome: "completed", stopReason: "finished" });
  });

  test("is counted if the chat template drops its calls, or if its coding is unknown", async () => {
    await using talk = await openTestGateway(["Hello"], {
      renderer: templateRenderer(callTemplates.dropping),
    });
    const call = { id: "c", type: "function", function: { name: "look", arguments: "{}" } };
    const messages = [
      hi,
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "A" },
    ];
    const dropped =
      "Cannot show the calls of earlier turns with the chat template: the prompt does not contain them; " +
      "send them as text, as the model writes them, or give the model a chat template that prints calls";
    const { status, body } = await talk.chat({ messages });
    expect([status, body.error?.message]).toEqual([400, dropped]);
    const packed = await talk.chat({ messages: [hi] }, { "content-encoding": "lz4" });
    expect(packed.status).toBe(415);
    expect((await talk.chat({ messages: [hi] })).status).toBe(200);
    const { turnCount, refused } = talk.counts();
    const unknown = expect.stringContaining('the content coding "lz4" is not supported') as string;
    expect([turnCount, Object.entries(refused)]).toEqual([
      1,
      [
        [dropped, 1],
        [unknown, 1],
      ],
    ]);
  });

  const nested = (depth: number): unknown =>
    JSON.parse(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`);
  const deep = nested(900);
  const call = (parameters: unknown) => [
    { type: "function", function: { name: "look", parameters: { type: "object", a: parameters } } },
  ];
  const called = { id: "toolu_1", name: "look" };

  test.each([
    ["in a tool", "chat", { messages: [hi], tools: call(deep) }],
    [
      "in a block",
      "messages",
      {
        messages: [
          hi,
          { role: "assistant", content: [{ type: "tool_use", ...called, input: deep }] },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "A" }],
          },
        ],
      },
    ],
    [
      "in arguments",
      "chat",
      {
        messages: [
          hi,
          {
            role: "assistant",
            content: null,
            tool_calls: [
              {
                id: "a",
                type: "function",
                function: { name: "look", arguments: `${"[".repeat(50_000)}${"]".repeat(50_000)}` },
              },
            ],
          },
          { role: "tool", tool_call_id: "a", content: "A" },
        ],
      },
    ],
    ["in content", "chat", { messages: [{ role: "user", content: [deep] }] }],
    ["in a field that changes nothing", "responses", { input: [hi], metadata: deep }],
  ] as const)("for it is nested deeply %s ends no session", async (_, dialect, body) => {
    await using talk = await openTestGateway(["Hello", "Hello"]);
    expect([200, 400]).toContain((await talk[dialect](body)).status);
    const fine = dialect === "responses" ? { input: [hi] } : { messages: [hi] };
    expect((await talk[dialect](fine)).status).toBe(200);
    expect((await talk.end()).outcome).toBe("completed");
  });

  test.each([true, false])(
    "for it could not be repeated is refused before anything is sampled (streamed: %s)",
    async (stream) => {
      await using talk = await openTestGateway(["Hello"]);
      const refused = await talk.responses({ input: [hi], metadata: deep, stream });
      expect([refused.status, refused.body.error?.message]).toEqual([
        400,
        "Cannot read metadata: it is nested too deeply; use at most 500 levels",
      ]);
      expect(await talk.prompts()).toEqual([]);
    },
  );
});

describe("a history that was not sampled here", () => {
  const go = { role: "user", content: "go" };

  test("has no turn for reasoning that another server encrypted, and keeps the call after it", async () => {
    const sealed = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" };
    await using talk = await openTestGateway(["done", "done"]);
    await talk.responses({ input: [go, sealed, sealed, { role: "user", content: "on" }] });
    const call = { type: "function_call", call_id: "c", name: "look", arguments: "{}" };
    const result = { type: "function_call_output", call_id: "c", output: "A" };
    await talk.responses({ input: [go, sealed, call, result] });
    expect(await talk.prompts()).toEqual([
      "user\ngo\nuser\non\nassistant\n",
      `user\ngo\nassistant\n<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>\ntool\nA\nassistant\n`,
    ]);
  });

  test("shows the input of a call that a client of Messages gives as a text", async () => {
    const renderer = templateRenderer(callTemplates.printing);
    await using talk = await openTestGateway(["done"], { renderer });
    const block = { type: "tool_use", id: "t1", name: "look", input: '{"at": "door"}' };
    const result = { type: "tool_result", tool_use_id: "t1", content: "A" };
    const { status } = await talk.messages({
      messages: [go, { role: "assistant", content: [block] }, { role: "user", content: [result] }],
    });
    expect(status).toBe(200);
    const [prompt] = await talk.prompts();
    expect(prompt).toContain('<t1|look{"at": "door"}>');
  });

  test("may give its tools in an item, and the policy calls them", async () => {
    const item = {
      type: "additional_tools",
      role: "developer",
      tools: [
        { type: "namespace", name: "box", tools: [{ type: "function", name: "look", parameters }] },
      ],
    };
    const boxed = '<tool_call>\n{"name": "box__look", "arguments": {"at": "door"}}\n</tool_call>';
    await using talk = await openTestGateway([boxed, "done"]);
    const { body } = await talk.responses({ input: [item, go] });
    const called = body.output.at(-1) as { readonly call_id: string };
    expect(called).toMatchObject({ type: "function_call", namespace: "box", name: "look" });
    const result = { type: "function_call_output", call_id: called.call_id, output: "A" };
    await talk.responses({ input: [item, go, ...body.output, result] });
    expect(talk.counts()).toMatchObject({ continuedCount: 1, roots: { first: 1 } });
  });
});
