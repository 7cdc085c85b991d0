import { expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { preparedEngine, type Reply } from "../../src/episode/lamp-episode.fixture.ts";
import { createGateway, inProcessUrl } from "../../src/gateway/create-gateway.ts";
import { episodeSamples } from "../../src/run/folder/episode-samples.ts";
import { characterIds, createCharacterRenderer } from "../../src/testing/character-renderer.ts";

const tools = [
  {
    type: "function",
    function: {
      name: "get",
      description: "Gets a thing.",
      parameters: { type: "object", properties: { n: { type: "integer" } } },
    },
  },
];

interface SentMessage {
  readonly role: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly arguments: string };
  }[];
}

/** A conversation through a gateway whose policy samples the given texts. */
async function converse(
  replies: readonly Reply[],
  options: { readonly parser: string; readonly around?: (engine: Engine) => Engine },
) {
  const base = createCharacterRenderer();
  const renderer = { ...base, card: { ...base.card, parser: options.parser } };
  const prepared = preparedEngine(replies);
  const engine = options.around?.(prepared) ?? prepared;
  const gateway = await createGateway({ engine, renderer });
  const { token, sessionId } = await gateway.openSession({ taskId: "t" });
  return {
    requests: prepared.requests,
    async ask(messages: readonly object[]): Promise<SentMessage> {
      const response = await gateway.fetch(`${inProcessUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({ model: "policy", messages, tools }),
      });
      const { choices } = (await response.json()) as { choices: [{ message: SentMessage }] };
      return choices[0].message;
    },
    async end() {
      await gateway.reward(sessionId, { reward: 1 });
      return await gateway.finish(sessionId);
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

test("two calls with the same id are kept apart, and so are their results", async () => {
  const call = (n: number): string =>
    `<|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>{"n": ${n}}<|tool_call_end|>`;
  const written = `<|tool_calls_section_begin|>${call(1)}${call(2)}<|tool_calls_section_end|>`;
  const replies = [written, "done"].map((text) => ({ outputIds: characterIds(text) }));
  await using talk = await converse(replies, { parser: "kimi_k2" });
  const asked = { role: "user", content: "go" };
  const answer = await talk.ask([asked]);
  const results = answer.tool_calls!.map(({ id, function: called }) => ({
    role: "tool",
    tool_call_id: id,
    content: `result of ${called.arguments}`,
  }));
  await talk.ask([asked, answer, ...results]);
  const episode = await talk.end();
  expect(episode.turns[0]?.steps).toMatchObject([
    { callId: "functions.get:0", arguments: '{"n": 1}', observation: 'result of {"n": 1}' },
    { callId: "t0000c001", arguments: '{"n": 2}', observation: 'result of {"n": 2}' },
  ]);
});

test("an engine that changes the list it is sent changes no later prompt", async () => {
  const replies = ["one", "two", "three"].map((text) => ({ outputIds: characterIds(text) }));
  const around = (engine: Engine): Engine => ({
    ...engine,
    async generate(request, sent) {
      const generation = await engine.generate(request, sent);
      (request.promptIds as Int32Array).fill(7);
      return generation;
    },
  });
  await using talk = await converse(replies, { parser: "qwen25", around });
  const messages: object[] = [];
  for (let turn = 0; turn < 3; turn++) {
    messages.push({ role: "user", content: "more" });
    messages.push(await talk.ask(messages));
  }
  const episode = await talk.end();
  const [sample, ...others] = episodeSamples(episode);
  expect(others).toEqual([]);
  expect(sample?.turns.map(({ start }) => sample.tokenIds.slice(0, start))).toEqual(
    talk.requests.map(({ promptIds }) => promptIds),
  );
});

/** Half of a surrogate pair, which a model can write in JSON as an escape. */
const half = "\\ud83d";

/** A conversation in each protocol: the first request, and the next one with the reply of the first. */
const protocols = {
  "chat/completions": {
    first: { messages: [{ role: "user", content: "go" }], tools },
    next: ({ choices }: { choices: [{ message: SentMessage }] }) => {
      const [{ message }] = choices;
      const results = message.tool_calls!.map(({ id }) => ({
        role: "tool",
        tool_call_id: id,
        content: "got",
      }));
      return { messages: [{ role: "user", content: "go" }, message, ...results], tools };
    },
  },
  responses: {
    first: {
      input: [{ role: "user", content: "go" }],
      tools: [
        { type: "function", name: "get" },
        { type: "custom", name: "patch" },
        { type: "shell" },
      ],
    },
    next: ({ output }: { output: { type: string; call_id: string }[] }) => {
      const results = output.map(({ type, call_id }) => ({
        type: `${type}_output`,
        call_id,
        output: type === "shell_call" ? [] : "got",
      }));
      return {
        ...protocols.responses.first,
        input: [...protocols.responses.first.input, ...output, ...results],
      };
    },
  },
  messages: {
    first: {
      max_tokens: 500,
      messages: [{ role: "user", content: "go" }],
      tools: [{ name: "get", input_schema: { type: "object" } }],
    },
    next: ({ content }: { content: { id: string }[] }) => {
      const { first } = protocols.messages;
      const results = content.map(({ id }) => ({
        type: "tool_result",
        tool_use_id: id,
        content: "got",
      }));
      const turns = [
        { role: "assistant", content },
        { role: "user", content: results },
      ];
      return { ...first, messages: [...first.messages, ...turns] };
    },
  },
} as const;

test.each([
  ["chat/completions", "get", `{"n": "${half}"}`],
  ["chat/completions", "get", `{"${half}": 1}`],
  ["chat/completions", `get${half}`, "{}"],
  ["responses", "get", `{"n": "${half}"}`],
  ["responses", "patch", `{"input": "+${half}"}`],
  ["responses", "shell", `{"commands": ["echo ${half}"]}`],
  ["messages", "get", `{"n": "${half}"}`],
] as const)(
  "half of a surrogate pair in a call ends no session (%s, %s)",
  async (protocol, name, args) => {
    const written = `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
    const base = createCharacterRenderer();
    const renderer = {
      ...base,
      card: { ...base.card, parser: "hermes", dialect: "vllm" as const },
    };
    const replies = [written, "done"].map((text) => ({ outputIds: characterIds(text) }));
    await using gateway = await createGateway({ engine: preparedEngine(replies), renderer });
    const { token } = await gateway.openSession({ taskId: "t" });
    const ask = async (body: object): Promise<string> => {
      const response = await gateway.fetch(`${inProcessUrl}/v1/${protocol}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({ model: "policy", ...body }),
      });
      expect(response.status).toBe(200);
      return await response.text();
    };
    const { first, next } = protocols[protocol];
    const reply = await ask(first);
    // JSON in UTF-8 turns a half that is not escaped into U+FFFD.
    if (name === "get") expect(reply).not.toContain("\ufffd");
    const isHalf = (text: string) =>
      !(text as unknown as { isWellFormed(): boolean }).isWellFormed();
    const argumentTexts = [...reply.matchAll(/"arguments":("(?:[^"\\]|\\.)*")/g)].map(
      ([, text]) => text!,
    );
    expect(argumentTexts.map((text) => JSON.parse(text) as string).filter(isHalf)).toEqual([]);
    await ask(next(JSON.parse(reply) as never));
    expect(gateway.counts).toMatchObject({ turnCount: 2, continuedCount: 1, notes: {} });
  },
);
