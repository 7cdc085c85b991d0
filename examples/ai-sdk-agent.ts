import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, stepCountIs, streamText, tool, type ModelMessage } from "ai";
import type { ForeignRun } from "turnwright";

/** An agent of the AI SDK: it calls tools until it has something to say to the user. */
export async function run(given: ForeignRun): Promise<void> {
  const { policyText, firstUserText, say, baseUrl, apiKey, fetch, signal } = given;
  const policy = createOpenAICompatible({
    name: "policy",
    baseURL: `${baseUrl}/v1`,
    apiKey,
    fetch,
  });
  const tools = Object.fromEntries(
    given.tools.map(({ name, description, parameters, execute }) => [
      name,
      tool({ description, inputSchema: jsonSchema(parameters), execute }),
    ]),
  );
  const messages: ModelMessage[] = [{ role: "user", content: firstUserText }];
  for (;;) {
    const turns = streamText({
      model: policy("policy"),
      system: policyText,
      messages,
      tools,
      stopWhen: stepCountIs(30),
      abortSignal: signal,
      maxRetries: 0,
      onError: ({ error }) => {
        throw error;
      },
    });
    messages.push(...(await turns.response).messages);
    const answer = await say(await turns.text);
    if (answer === undefined) return;
    messages.push({ role: "user", content: answer });
  }
}
