import path from "node:path";
import { createGatewayApp } from "../../src/gateway/server/gateway-app.ts";
import { createGatewayRun } from "../../src/composition/gateway-run.ts";
import { readGatewayConfig } from "../../src/composition/config/gateway-config.ts";
import { smallModelFolder } from "../support/small-model.ts";

const parameters = {
  type: "object",
  properties: { name: { type: "string" }, postcode: { type: "string" } },
  required: ["name"],
};
const findCustomer = { name: "find_customer", description: "Finds a customer.", parameters };
const chatTools = [{ type: "function", function: findCustomer }];
const responsesTools = [{ type: "function", ...findCustomer, strict: false }];
const messagesTools = [
  { name: findCustomer.name, description: findCustomer.description, input_schema: parameters },
];
const greeting = "Hello. Where is my order 4775? I am Turlar Denton, postcode 15176.";

/** Bodies by dialect; each is also sent with `stream: true`. The last two of each are refused. */
const bodies: Readonly<Record<string, readonly object[]>> = {
  "/v1/chat/completions": [
    { messages: [{ role: "user", content: greeting }] },
    {
      messages: [
        { role: "system", content: "You help customers of a small shop." },
        { role: "user", content: greeting },
      ],
      tools: chatTools,
      logprobs: true,
    },
    { messages: [{ role: "oracle", content: "Hello." }] },
    { messages: "Hello." },
  ],
  "/v1/responses": [
    { input: greeting },
    {
      instructions: "You help customers of a small shop.",
      input: [
        { type: "message", role: "user", content: [{ type: "input_text", text: greeting }] },
        { type: "function_call", call_id: "call_1", name: "find_customer", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output: "Error: no name" },
      ],
      tools: responsesTools,
    },
    { input: [{ type: "oracle" }] },
    { input: 5 },
  ],
  "/v1/messages": [
    { max_tokens: 40, messages: [{ role: "user", content: greeting }] },
    {
      max_tokens: 40,
      system: "You help customers of a small shop.",
      tools: messagesTools,
      messages: [
        { role: "user", content: greeting },
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "toolu_1", name: "find_customer", input: {} }],
        },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "Error: no name" }],
        },
      ],
    },
    { max_tokens: 40, messages: [{ role: "oracle", content: "Hello." }] },
    { max_tokens: 40, messages: "Hello." },
  ],
};

/** Asks a gateway in each dialect and finishes the session. Returns each request with the bytes of its reply. */
export async function askGateway(scratch: string): Promise<string> {
  const config = readGatewayConfig({
    engine: "reference",
    model: smallModelFolder,
    out: path.join(scratch, "run"),
    threads: 1,
    temperature: 0,
    "sampling-seed": 5,
  });
  await using run = await createGatewayRun(config, { env: {} });
  const { gateway } = run;
  const app = createGatewayApp(gateway, { opensSessions: false, checksHost: false });
  const { sessionId, token } = await gateway.openSession();
  const replies: string[] = [];
  for (const [place, forms] of Object.entries(bodies)) {
    for (const body of forms) {
      for (const stream of [false, true]) {
        const request = new Request(`http://gateway.test${place}`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "policy", ...body, stream }),
        });
        const reply = await app.fetch(request);
        const asked = `${place} ${JSON.stringify(body)} stream ${stream}`;
        replies.push(`${asked}\n${reply.status}\n${await reply.text()}`);
      }
    }
  }
  await gateway.finish(gateway.store.byId(sessionId)!, { reward: { reward: 1 } });
  await run.end();
  return replies.join("\n\n");
}
