import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { inProcessUrl } from "../../src/gateway/create-gateway.ts";
import { finishOneRow } from "./check-session.fixture.ts";
import {
  openAiTools,
  openStorefrontSession,
  storefront,
  type StorefrontSession,
} from "./storefront-session.fixture.ts";

function client({ gateway, apiKey }: StorefrontSession): OpenAI {
  return new OpenAI({ baseURL: `${inProcessUrl}/v1`, apiKey, fetch: gateway.fetch, maxRetries: 0 });
}

type ChatMessage = OpenAI.Chat.ChatCompletionMessageParam;

const opening: ChatMessage = { role: "system", content: storefront.policyText };

const tools = openAiTools as unknown as OpenAI.Chat.ChatCompletionFunctionTool[];

/** Leads a customer's conversation with the replies of `ask`. */
async function lead(
  { shop }: StorefrontSession,
  ask: (messages: ChatMessage[]) => Promise<OpenAI.Chat.ChatCompletionMessage>,
): Promise<void> {
  const messages: ChatMessage[] = [opening, { role: "user", content: await shop.begin() }];
  while (!shop.isDone) {
    const message = await ask(messages);
    messages.push(message);
    for (const call of message.tool_calls ?? []) {
      if (call.type !== "function") continue;
      const given: unknown = JSON.parse(call.function.arguments);
      const content = await shop.call(call.function.name, given);
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
    if ((message.tool_calls ?? []).length > 0) continue;
    const answer = await shop.say(message.content ?? "");
    if (answer !== undefined) messages.push({ role: "user", content: answer });
  }
}

describe("openai", () => {
  test("plays an episode with Chat Completions", async () => {
    await using open = await openStorefrontSession(0);
    const openai = client(open);
    await lead(open, async (messages) => {
      const reply = await openai.chat.completions.create({ model: "policy", messages, tools });
      return reply.choices[0]!.message;
    });
    expect(open.shop.callCount).toBeGreaterThan(1);
    await finishOneRow(open);
  });

  test("plays an episode with Chat Completions, streamed", async () => {
    await using open = await openStorefrontSession(1);
    const openai = client(open);
    let deltaCount = 0;
    await lead(open, async (messages) => {
      const stream = openai.chat.completions.stream({ model: "policy", messages, tools });
      stream.on("content.delta", () => (deltaCount += 1));
      return (await stream.finalChatCompletion()).choices[0]!.message;
    });
    expect(deltaCount).toBeGreaterThan(20);
    await finishOneRow(open);
  });

  test("plays an episode with runTools()", async () => {
    await using open = await openStorefrontSession(2);
    const openai = client(open);
    const runnable = openAiTools.map(({ function: { name, ...about } }) => ({
      type: "function" as const,
      function: {
        ...about,
        name,
        parse: (text: string) => JSON.parse(text) as object,
        function: async (given: object) => await open.shop.call(name, given),
      },
    }));
    let messages: ChatMessage[] = [opening, { role: "user", content: await open.shop.begin() }];
    while (!open.shop.isDone) {
      const runner = openai.chat.completions.runTools({
        model: "policy",
        messages,
        stream: true,
        tools: runnable as never,
      });
      const text = await runner.finalContent();
      messages = [...runner.messages];
      const answer = await open.shop.say(text ?? "");
      if (answer !== undefined) messages.push({ role: "user", content: answer });
    }
    await finishOneRow(open);
  });

  test.each([false, true])("plays an episode with Responses (streamed: %s)", async (streams) => {
    await using open = await openStorefrontSession(3);
    const openai = client(open);
    const input: OpenAI.Responses.ResponseInputItem[] = [
      { role: "user", content: await open.shop.begin() },
    ];
    const flat = openAiTools.map(({ function: about }) => ({
      type: "function" as const,
      strict: false,
      ...about,
    }));
    while (!open.shop.isDone) {
      const body = { model: "policy", instructions: storefront.policyText, input, tools: flat };
      const reply = streams
        ? await openai.responses.stream(body).finalResponse()
        : await openai.responses.create(body);
      input.push(...(reply.output as OpenAI.Responses.ResponseInputItem[]));
      const before = open.shop.callCount;
      for (const item of reply.output) {
        if (item.type !== "function_call") continue;
        const output = await open.shop.call(item.name, JSON.parse(item.arguments));
        input.push({ type: "function_call_output", call_id: item.call_id, output });
      }
      if (open.shop.callCount > before) continue;
      const answer = await open.shop.say(reply.output_text);
      if (answer !== undefined) input.push({ role: "user", content: answer });
    }
    await finishOneRow(open);
  });

  test("plays an episode with Responses that continue one another", async () => {
    await using open = await openStorefrontSession(4);
    const openai = client(open);
    const flat = openAiTools.map(({ function: about }) => ({
      type: "function" as const,
      strict: false,
      ...about,
    }));
    let input: OpenAI.Responses.ResponseInputItem[] = [
      { role: "user", content: await open.shop.begin() },
    ];
    let previous: string | undefined;
    while (!open.shop.isDone) {
      const reply: OpenAI.Responses.Response = await openai.responses.create({
        model: "policy",
        instructions: storefront.policyText,
        input,
        tools: flat,
        ...(previous !== undefined && { previous_response_id: previous }),
      });
      previous = reply.id;
      input = [];
      for (const item of reply.output) {
        if (item.type !== "function_call") continue;
        const output = await open.shop.call(item.name, JSON.parse(item.arguments));
        input.push({ type: "function_call_output", call_id: item.call_id, output });
      }
      if (input.length > 0) continue;
      const answer = await open.shop.say(reply.output_text);
      if (answer !== undefined) input.push({ role: "user", content: answer });
    }
    await finishOneRow(open);
  });

  test("continues with Responses from a Chat Completions reply, under the same instructions", async () => {
    await using open = await openStorefrontSession(0);
    const openai = client(open);
    const begun = await openai.chat.completions.create({
      model: "policy",
      tools,
      messages: [opening, { role: "user", content: await open.shop.begin() }],
    });
    const answer = (await open.shop.say(begun.choices[0]!.message.content ?? "")) ?? "";
    const reply = await openai.responses.create({
      model: "policy",
      previous_response_id: begun.id,
      input: answer,
      instructions: storefront.policyText,
      tools: openAiTools.map(({ function: about }) => ({
        type: "function" as const,
        strict: false,
        ...about,
      })),
    });
    expect(reply.output).toHaveLength(1);
    const { roots, turnCount } = open.gateway.gateway.counts;
    expect({ roots, turnCount }).toEqual({ roots: { first: 1 }, turnCount: 2 });
  });
});
