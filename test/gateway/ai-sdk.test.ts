import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  generateText,
  jsonSchema,
  stepCountIs,
  streamText,
  tool,
  type LanguageModel,
  type ModelMessage,
  type ToolSet,
} from "ai";
import { describe, expect, test } from "vitest";
import { inProcessUrl } from "../../src/gateway/create-gateway.ts";
import { finishOneRow } from "./check-session.fixture.ts";
import {
  openAiTools,
  openStorefrontSession,
  storefront,
  type StorefrontSession,
} from "./storefront-session.fixture.ts";

const providers: Readonly<Record<string, (open: StorefrontSession) => LanguageModel>> = {
  "openai-compatible": ({ gateway: { fetch }, apiKey }) =>
    createOpenAICompatible({ name: "policy", baseURL: `${inProcessUrl}/v1`, apiKey, fetch })(
      "policy",
    ),
  "openai chat": ({ gateway: { fetch }, apiKey }) =>
    createOpenAI({ baseURL: `${inProcessUrl}/v1`, apiKey, fetch }).chat("policy"),
  "openai responses": ({ gateway: { fetch }, apiKey }) =>
    createOpenAI({ baseURL: `${inProcessUrl}/v1`, apiKey, fetch }).responses("policy"),
  anthropic: ({ gateway: { fetch }, apiKey }) =>
    createAnthropic({ baseURL: `${inProcessUrl}/v1`, apiKey, fetch })("policy"),
};

function toolsOf({ shop }: StorefrontSession): ToolSet {
  return Object.fromEntries(
    openAiTools.map(({ function: { name, description, parameters } }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema(parameters),
        execute: async (given) => await shop.call(name, given),
      }),
    ]),
  );
}

describe.each(Object.keys(providers))("the AI SDK over %s", (name) => {
  test.each(["generateText", "streamText"])(
    "plays an episode of several steps with %s",
    async (way) => {
      await using open = await openStorefrontSession(way === "streamText" ? 8 : 9);
      const model = providers[name]!(open);
      const tools = toolsOf(open);
      const messages: ModelMessage[] = [{ role: "user", content: await open.shop.begin() }];
      let deltaCount = 0;
      while (!open.shop.isDone) {
        const options = {
          model,
          messages,
          tools,
          system: storefront.policyText,
          maxRetries: 0,
          stopWhen: stepCountIs(20),
        };
        let text: string;
        if (way === "generateText") {
          const result = await generateText(options);
          messages.push(...result.response.messages);
          text = result.text;
        } else {
          const result = streamText(options);
          for await (const part of result.fullStream) {
            if (part.type === "text-delta") deltaCount += 1;
            if (part.type === "error") throw part.error;
          }
          messages.push(...(await result.response).messages);
          text = await result.text;
        }
        const answer = await open.shop.say(text);
        if (answer !== undefined) messages.push({ role: "user", content: answer });
      }
      if (way === "streamText") expect(deltaCount).toBeGreaterThan(10);
      await finishOneRow(open);
    },
  );
});
