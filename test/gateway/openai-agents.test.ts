import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
  tool,
  type AgentInputItem,
} from "@openai/agents";
import { describe, expect, test } from "vitest";
import { inProcessUrl } from "../../src/gateway/create-gateway.ts";
import { finishOneRow } from "./check-session.fixture.ts";
import {
  openAiTools,
  openStorefrontSession,
  storefront,
  type StorefrontSession,
} from "./storefront-session.fixture.ts";

setTracingDisabled(true);

type ChatClient = ConstructorParameters<typeof OpenAIChatCompletionsModel>[0];

async function createClient({ gateway, apiKey }: StorefrontSession): Promise<ChatClient> {
  // The release of `openai` that the agents' package brings along.
  const { createRequire } = await import("node:module");
  const place = createRequire(import.meta.resolve("@openai/agents"));
  const { pathToFileURL } = await import("node:url");
  const { OpenAI } = (await import(pathToFileURL(place.resolve("openai")).href)) as {
    OpenAI: new (options: object) => ChatClient;
  };
  return new OpenAI({ baseURL: `${inProcessUrl}/v1`, apiKey, fetch: gateway.fetch, maxRetries: 0 });
}

function createAgent(
  open: StorefrontSession,
  model: OpenAIChatCompletionsModel | OpenAIResponsesModel,
) {
  const tools = openAiTools.map(({ function: { name, description, parameters } }) =>
    tool({
      name,
      description,
      strict: false,
      parameters: { ...parameters, additionalProperties: true } as never,
      execute: async (given: unknown) => await open.shop.call(name, given),
    }),
  );
  return new Agent({ name: "shop", instructions: storefront.policyText, model, tools });
}

describe("@openai/agents", () => {
  test.each([
    ["chat", false],
    ["chat", true],
    ["responses", false],
    ["responses", true],
  ])("plays an episode over %s (streamed: %s)", async (dialect, streams) => {
    await using open = await openStorefrontSession(streams ? 10 : 11);
    const client = await createClient(open);
    const model =
      dialect === "chat"
        ? new OpenAIChatCompletionsModel(client, "policy")
        : new OpenAIResponsesModel(client, "policy");
    const agent = createAgent(open, model);
    const runner = new Runner({ tracingDisabled: true });
    let input: AgentInputItem[] = [{ role: "user", content: await open.shop.begin() }];
    while (!open.shop.isDone) {
      let said: unknown;
      if (streams) {
        const result = await runner.run(agent, input, { stream: true });
        await result.completed;
        ({ finalOutput: said, history: input } = result);
      } else {
        const result = await runner.run(agent, input);
        ({ finalOutput: said, history: input } = result);
      }
      const answer = await open.shop.say(String(said));
      if (answer !== undefined) input = [...input, { role: "user", content: answer }];
    }
    expect(open.shop.callCount).toBeGreaterThan(1);
    await finishOneRow(open);
  });
});
