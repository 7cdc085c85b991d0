import { ChatAnthropic } from "@langchain/anthropic";
import type { BaseMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { describe, expect, test } from "vitest";
import { inProcessUrl } from "../../src/gateway/create-gateway.ts";
import { finishOneRow } from "./check-session.fixture.ts";
import {
  openAiTools,
  openStorefrontSession,
  storefront,
  type StorefrontSession,
} from "./storefront-session.fixture.ts";

const models = {
  openai: ({ gateway: { fetch }, apiKey }: StorefrontSession, streaming: boolean) =>
    new ChatOpenAI({
      model: "policy",
      apiKey,
      streaming,
      maxRetries: 0,
      configuration: { baseURL: `${inProcessUrl}/v1`, fetch },
    }),
  anthropic: ({ gateway: { fetch }, apiKey }: StorefrontSession, streaming: boolean) =>
    new ChatAnthropic({
      model: "policy",
      apiKey,
      streaming,
      maxRetries: 0,
      maxTokens: 1000,
      anthropicApiUrl: inProcessUrl,
      clientOptions: { fetch },
    }),
};

describe("langchain", () => {
  // Streamed, its model for openai fetches a table of tokens from the network.
  test.each([
    ["openai", false],
    ["anthropic", false],
    ["anthropic", true],
  ] as const)("plays an episode over %s (streamed: %s)", async (name, streams) => {
    await using open = await openStorefrontSession(streams ? 12 : 13);
    const tools = openAiTools.map(({ function: { name: called, description, parameters } }) =>
      tool(async (given: unknown) => await open.shop.call(called, given), {
        name: called,
        description,
        schema: parameters as never,
      }),
    );
    const agent = createAgent({
      model: models[name](open, streams),
      tools: tools as never,
      systemPrompt: storefront.policyText,
    });
    let messages: unknown[] = [{ role: "user", content: await open.shop.begin() }];
    while (!open.shop.isDone) {
      const result = (await agent.invoke({ messages: messages as never })) as {
        messages: BaseMessage[];
      };
      messages = [...result.messages];
      const answer = await open.shop.say(result.messages.at(-1)!.text);
      if (answer !== undefined) messages.push({ role: "user", content: answer });
    }
    expect(open.shop.callCount).toBeGreaterThan(1);
    await finishOneRow(open);
  });
});
