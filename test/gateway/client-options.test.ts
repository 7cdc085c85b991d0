import { beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GatewayOptions } from "../../src/gateway/gateway.ts";
import { openInProcess } from "../../src/gateway/create-gateway.ts";
import { createRenderer } from "../../src/renderer/create-renderer.ts";
import type { Renderer } from "../../src/renderer/renderer.ts";
import { smallModelFolder } from "../support/small-model.ts";

let renderer: Renderer;

beforeAll(async () => {
  renderer = await createRenderer({ modelDir: smallModelFolder });
});

/** A gateway whose policy samples these texts in order. */
async function open(texts: readonly string[], options: Partial<GatewayOptions> = {}) {
  const prompts: string[] = [];
  const left = [...texts];
  const engine: Engine = {
    kind: "talking",
    async generate({ promptIds, requestId }, { onTokens } = {}) {
      prompts.push(await renderer.codec.decode([...promptIds]));
      const outputIds = [
        ...(await renderer.codec.encode(left.shift()!)),
        renderer.stopTokenIds[0]!,
      ];
      const logprobs = outputIds.map((_, place) => -(place + 1) / 16);
      onTokens?.({ tokenIds: outputIds, logprobs });
      return {
        outputIds,
        logprobs,
        finish: { type: "stop", matched: outputIds.at(-1)! },
        pieces: [{ requestId, tokenCount: outputIds.length, policyVersion: "1", finish: "stop" }],
        discarded: [],
      };
    },
    describe: async () => ({ kind: "talking", logprobConvention: "tempered" }),
    close: async () => {},
  };
  const { gateway, fetch } = await openInProcess({ engine, renderer, ...options });
  const { token, sessionId } = await gateway.openSession({ taskId: "t" });
  const post = async (path: string, body: object) => {
    const response = await fetch(`http://localhost/v1/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ model: "policy", ...body }),
    });
    return { status: response.status, text: await response.text() };
  };
  const ask = async <Body>(path: string, body: object): Promise<Body> => {
    const { status, text } = await post(path, body);
    if (status !== 200) throw new Error(text);
    return JSON.parse(text) as Body;
  };
  return { gateway, prompts, ask, post, session: gateway.store.byId(sessionId)! };
}

const hi = { messages: [{ role: "user", content: "Hi" }] };
const parameters = { type: "object", properties: { n: { type: "number" } } };
const add = { type: "function", function: { name: "add", parameters } };
const calling = (name: string, argumentsText: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${argumentsText}}\n</tool_call>`;
const twice = `${calling("add", '{"n": 1}')}\n${calling("add", '{"n": 2}')}`;

interface ChatReply {
  readonly choices: readonly {
    readonly message: {
      readonly content: string;
      readonly tool_calls: readonly { readonly id: string }[];
    };
    readonly logprobs: { readonly content: readonly TokenLogprob[] };
  }[];
}

interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
  readonly top_logprobs: readonly unknown[];
}

interface ResponsesReply {
  readonly id: string;
  readonly output: readonly {
    readonly type: string;
    readonly call_id: string;
    readonly content: readonly { readonly logprobs: readonly TokenLogprob[] }[];
  }[];
}

interface StreamEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly logprobs?: readonly TokenLogprob[];
  readonly part?: { readonly logprobs: readonly TokenLogprob[] };
  readonly item?: ResponsesReply["output"][number];
  readonly response?: ResponsesReply;
}

function textOf(tokens: readonly TokenLogprob[]): string {
  return Buffer.from(tokens.flatMap(({ bytes }) => bytes)).toString();
}

describe("a client that takes one call a turn", () => {
  test("gets only the first of several calls, and the others are counted", async () => {
    const { gateway, ask } = await open([twice, twice, twice], { constraints: "refuse" });
    const chat = await ask<ChatReply>("chat/completions", {
      ...hi,
      tools: [add],
      parallel_tool_calls: false,
    });
    expect(chat.choices[0]!.message.tool_calls).toHaveLength(1);
    const responses = await ask<ResponsesReply>("responses", {
      input: "Hi",
      tools: [{ type: "function", name: "add", parameters }],
      parallel_tool_calls: false,
    });
    expect(responses.output.map(({ type }) => type)).toEqual(["function_call"]);
    const messages = await ask<{ content: readonly { type: string }[] }>("messages", {
      ...hi,
      max_tokens: 100,
      tools: [{ name: "add", input_schema: parameters }],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    });
    expect(messages.content.map(({ type }) => type)).toEqual(["tool_use"]);
    expect(gateway.counts).toMatchObject({ leftOutCallCount: 3, unenforced: {} });
  });

  test("continues after all sampled tokens, token for token", async () => {
    const { gateway, ask, session } = await open([twice, "Three"]);
    const asked = { tools: [add], parallel_tool_calls: false };
    const first = await ask<ChatReply>("chat/completions", { ...hi, ...asked });
    const { message } = first.choices[0]!;
    const result = { role: "tool", tool_call_id: message.tool_calls[0]!.id, content: "1" };
    await ask("chat/completions", { messages: [...hi.messages, message, result], ...asked });
    expect(gateway.counts).toMatchObject({ continuedCount: 1, leftOutCallCount: 1 });
    const [row, ...others] = gateway.samples(session);
    expect(others).toEqual([]);
    const sampled = session.tree.nodes.flatMap(({ record }) => record.generation.outputIds);
    const { tokenIds, lossMask } = row!;
    expect(tokenIds.filter((_, place) => lossMask[place] === 1)).toEqual(sampled);
  });
});

describe("a tool that takes plain text", () => {
  const tools = [{ type: "custom", name: "edit", description: "Edits files." }];
  const written = calling("edit", '{"input":  "*** Begin"}');

  test("is shown to the policy, called with its text, and its turn is continued", async () => {
    const { gateway, ask, prompts } = await open([written, "Done"]);
    const input = [{ role: "user", content: "Hi" }];
    const { output } = await ask<ResponsesReply>("responses", { input, tools });
    expect(prompts[0]).toContain('"name": "edit"');
    expect(output).toMatchObject([{ type: "custom_tool_call", name: "edit", input: "*** Begin" }]);
    const { call_id } = output[0]!;
    const result = { type: "custom_tool_call_output", call_id, output: "Patched" };
    await ask("responses", { input: [...input, ...output, result], tools });
    expect(prompts[1]).toBe(
      `${prompts[0]!}${written}<|im_end|>\n<|im_start|>user\n<tool_response>\nPatched\n` +
        "</tool_response><|im_end|>\n<|im_start|>assistant\n",
    );
    expect(gateway.counts).toMatchObject({ continuedCount: 1, roots: { first: 1 } });
  });

  test("is also continued by its reply's id", async () => {
    const { gateway, ask } = await open([written, "Done"]);
    const { id, output } = await ask<ResponsesReply>("responses", { input: "Hi", tools });
    const { call_id } = output[0]!;
    const result = { type: "custom_tool_call_output", call_id, output: "Patched" };
    await ask("responses", { previous_response_id: id, input: [result], tools });
    expect(gateway.counts).toMatchObject({ continuedCount: 1 });
  });

  test("is called with the policy's text if the text has another form", async () => {
    const { ask, gateway } = await open([calling("edit", '{"patch": "x"}'), "Sorry"]);
    const input = [{ role: "user", content: "Hi" }];
    const { output } = await ask<ResponsesReply>("responses", { input, tools });
    expect(output).toMatchObject([{ type: "custom_tool_call", input: '{"patch": "x"}' }]);
    const { call_id } = output[0]!;
    const result = { type: "custom_tool_call_output", call_id, output: "No patch" };
    await ask("responses", { input: [...input, ...output, result], tools });
    expect(gateway.counts).toMatchObject({ continuedCount: 1 });
  });
});

test("older functions are called one at a time, and their turns are continued", async () => {
  const { ask, gateway } = await open([twice, "Three"]);
  const functions = [{ name: "add", parameters }];
  // An empty list of tools next to them has no effect.
  const first = await ask<ChatReply>("chat/completions", { ...hi, functions, tools: [] });
  const { message } = first.choices[0]!;
  expect(message).toMatchObject({ function_call: { name: "add", arguments: '{"n": 1}' } });
  const result = { role: "function", name: "add", content: "1" };
  await ask("chat/completions", { messages: [...hi.messages, message, result], functions });
  expect(gateway.counts).toMatchObject({ continuedCount: 1, leftOutCallCount: 1 });
});

describe("options without enforcement", () => {
  const search = [{ type: "web_search" }];

  test("are counted, and reported at the end of a run", async () => {
    const { ask, post, gateway } = await open(["a", "b", "c"]);
    await ask("responses", { input: "Hi", tools: search });
    await ask("responses", { input: "Hi", top_logprobs: 2, truncation: "auto" });
    await ask("chat/completions", { ...hi, temperature: 0.5, top_p: 0.9, audio: {} });
    expect(gateway.counts).toMatchObject({
      unenforced: { "tool web_search": 1, top_logprobs: 1, truncation: 1 },
      ignoredFields: { temperature: 1, top_p: 1, audio: 1 },
    });
    for (const place of [0, 1]) {
      const tools = [...[{ type: "web_search" }].slice(place), { type: "added_2027" }];
      expect((await post("responses", { input: "Hi", tools })).status).toBe(400);
    }
    expect(gateway.counts.refused).toEqual({
      'Cannot read tools[].type: there is no tool of type "added_2027"; give it as a function with a JSON Schema': 2,
    });
    expect(gateway.warning).toBe(
      "requests gave tools of a server, which the policy was not shown: web_search 1",
    );
  });

  test("is counted if only a server or an engine could enforce it", async () => {
    const { ask, gateway } = await open(["a", "b", "c", "d"]);
    await ask("chat/completions", {
      ...hi,
      web_search_options: {},
      guided_json: { type: "object" },
      logit_bias: { 5: -100 },
      ignore_eos: true,
      min_tokens: 50,
      max_output_tokens: 9,
      chat_template: "{{ messages }}",
      add_generation_prompt: false,
      truncate_prompt_tokens: 10,
      user: "me",
      structured_outputs: { choice: ["a"] },
      grammar: "root ::= x",
      stop_token_ids: [5],
      bad_words: ["a"],
      allowed_token_ids: [5],
      structural_tag: "{}",
      documents: [{ text: "Opening hours" }],
    });
    await ask("messages", { ...hi, max_tokens: 9, mcp_servers: [{ type: "url", name: "x" }] });
    await ask("messages", { ...hi, max_tokens: 9, mcp_servers: [], logit_bias: {} });
    expect(gateway.counts).toMatchObject({
      unenforced: {
        web_search_options: 1,
        guided_json: 1,
        logit_bias: 1,
        structured_outputs: 1,
        grammar: 1,
        mcp_servers: 1,
        stop_token_ids: 1,
        ignore_eos: 1,
        min_tokens: 1,
        max_output_tokens: 1,
        chat_template: 1,
        add_generation_prompt: 1,
        truncate_prompt_tokens: 1,
        bad_words: 1,
        allowed_token_ids: 1,
        structural_tag: 1,
        documents: 1,
      },
      ignoredFields: { user: 1 },
    });
    expect(gateway.counts.ignoredFields).not.toHaveProperty("mcp_servers");
    const plain = { ignore_eos: false, min_tokens: 0, add_generation_prompt: true };
    await ask("chat/completions", { ...hi, ...plain });
    expect(gateway.counts.unenforced).toMatchObject({
      ignore_eos: 1,
      min_tokens: 1,
      add_generation_prompt: 1,
    });
    const strict = await open([], { constraints: "refuse" });
    const servers = { mcp_servers: [{ type: "url", name: "x" }] };
    expect((await strict.post("messages", { ...hi, max_tokens: 9, ...servers })).status).toBe(400);
  });

  test("is refused on request", async () => {
    const { post } = await open([], { constraints: "refuse" });
    const refusals = [];
    for (const more of [{ tools: search }, { top_logprobs: 2 }]) {
      const { status, text } = await post("responses", { input: "Hi", ...more });
      refusals.push([status, (JSON.parse(text) as { error: { message: string } }).error.message]);
    }
    expect(refusals).toEqual([
      [400, "Cannot enforce tool web_search: a server would run this tool, and there is none here"],
      [
        400,
        "Cannot enforce top_logprobs: the engine is asked for the logprobs of the sampled tokens alone",
      ],
    ]);
  });
});

describe("logprobs of tokens", () => {
  const said = "né 😀 日本";

  test("have the bytes of the reply's text, and end with it", async () => {
    const { ask } = await open([said]);
    const { choices } = await ask<ChatReply>("chat/completions", { ...hi, logprobs: true });
    const { content } = choices[0]!.logprobs;
    expect(choices[0]!.message.content).toBe(said);
    expect(textOf(content)).toBe(said);
    expect(content.map(({ logprob }) => logprob)).toEqual(
      content.map((_, place) => -(place + 1) / 16),
    );
  });

  test("end before a stop text", async () => {
    const { ask } = await open([`${said} STOP and more`]);
    const { choices } = await ask<ChatReply>("chat/completions", {
      ...hi,
      logprobs: true,
      stop: ["STOP"],
    });
    expect(choices[0]!.message.content).toBe(`${said} `);
    // One token contains the last space and the first letter of the stop text.
    expect(textOf(choices[0]!.logprobs.content)).toBe(`${said} S`);
  });

  test.each([
    ["STOP, STOP again", ""],
    ["a STOP. a STOP", "a"],
  ])("end at the first stop text of %j", async (written, tokens) => {
    const { ask } = await open([written]);
    const { choices } = await ask<ChatReply>("chat/completions", {
      ...hi,
      logprobs: true,
      stop: ["STOP"],
    });
    expect(textOf(choices[0]!.logprobs.content).replace(/ S?$/, "")).toBe(tokens);
  });

  test("are returned with the text of Responses, and not with its calls", async () => {
    const tools = [{ type: "function", name: "add", parameters }];
    const include = ["message.output_text.logprobs"];
    const { ask, post } = await open([`${said}\n${twice}`, said, said]);
    const { output } = await ask<ResponsesReply>("responses", { input: "Hi", tools, include });
    expect(output.map(({ type }) => type)).toEqual(["message", "function_call", "function_call"]);
    expect(textOf(output[0]!.content[0]!.logprobs).trimEnd()).toBe(said);
    const { text } = await post("responses", { input: "Hi", include, stream: true });
    const events = text.split("\n").flatMap((line) => {
      return line.startsWith("data: ")
        ? [JSON.parse(line.slice("data: ".length)) as StreamEvent]
        : [];
    });
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
    const find = (type: string) => events.find((event) => event.type === type)!;
    for (const logprobs of [
      find("response.output_text.done").logprobs!,
      find("response.content_part.done").part!.logprobs,
      find("response.output_item.done").item!.content[0]!.logprobs,
      find("response.completed").response!.output[0]!.content[0]!.logprobs,
    ]) {
      expect(textOf(logprobs)).toBe(said);
    }
    const plain = await ask<ResponsesReply>("responses", { input: "Hi" });
    expect(plain.output[0]!.content[0]!.logprobs).toEqual([]);
  });
});
