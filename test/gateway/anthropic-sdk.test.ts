import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { inProcessUrl } from "../../src/gateway/create-gateway.ts";
import { finishOneRow } from "./check-session.fixture.ts";
import {
  openAiTools,
  openStorefrontSession,
  storefront,
  type StorefrontSession,
} from "./storefront-session.fixture.ts";

function client({ gateway, apiKey }: StorefrontSession): Anthropic {
  return new Anthropic({ baseURL: inProcessUrl, apiKey, fetch: gateway.fetch, maxRetries: 0 });
}

const tools = openAiTools.map(({ function: { name, description, parameters } }) => ({
  name,
  description,
  input_schema: parameters as unknown as Anthropic.Tool.InputSchema,
}));

describe("@anthropic-ai/sdk", () => {
  test.each([false, true])("plays an episode (streamed: %s)", async (streams) => {
    await using open = await openStorefrontSession(streams ? 5 : 6);
    const anthropic = client(open);
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: await open.shop.begin() }];
    let textEventCount = 0;
    while (!open.shop.isDone) {
      const system = storefront.policyText;
      const body = { model: "policy", max_tokens: 1000, system, messages, tools };
      const stream = streams ? anthropic.messages.stream(body) : undefined;
      stream?.on("text", () => (textEventCount += 1));
      const reply = (await stream?.finalMessage()) ?? (await anthropic.messages.create(body));
      messages.push({ role: "assistant", content: reply.content });
      const results: Anthropic.ToolResultBlockParam[] = [];
      for (const block of reply.content) {
        if (block.type !== "tool_use") continue;
        const content = await open.shop.call(block.name, block.input);
        results.push({ type: "tool_result", tool_use_id: block.id, content });
      }
      expect(reply.stop_reason).toBe(results.length > 0 ? "tool_use" : "end_turn");
      if (results.length > 0) {
        messages.push({ role: "user", content: results });
        continue;
      }
      const said = reply.content.map((block) => (block.type === "text" ? block.text : "")).join("");
      const answer = await open.shop.say(said);
      if (answer !== undefined) messages.push({ role: "user", content: answer });
    }
    if (streams) expect(textEventCount).toBeGreaterThan(20);
    await finishOneRow(open);
  });

  test("counts tokens exactly", async () => {
    await using open = await openStorefrontSession(0);
    const anthropic = client(open);
    const content = await open.shop.begin();
    const body = { model: "policy", messages: [{ role: "user" as const, content }], tools };
    const counted = await anthropic.messages.countTokens(body);
    const reply = await anthropic.messages.create({ ...body, max_tokens: 100 });
    expect(counted.input_tokens).toBe(reply.usage.input_tokens);
    expect(counted.input_tokens).toBe(open.engine.prompts[0]!.length);
  });
});
