import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

// The two lines that the gateway needs: the address of the policy, and the key of this session.
const { OPENAI_BASE_URL: baseURL = "http://127.0.0.1:8484/v1", OPENAI_API_KEY: apiKey = "" } =
  process.env;
const policy = createOpenAICompatible({ name: "policy", baseURL, apiKey });

const turns = streamText({
  model: policy("policy"),
  system: "You help the customers of a shop.",
  prompt: "Hi, I am Turlar Denton, 15176. Where is my order 4775?",
  tools: {
    find_customer: tool({
      description: "Find a customer.",
      inputSchema: z.object({ name: z.string(), postcode: z.string() }),
      execute: ({ name }) => ({ customer: name, orders: ["4775"] }),
    }),
    get_order: tool({
      description: "Look up an order.",
      inputSchema: z.object({ order: z.string() }),
      execute: ({ order }) => ({ order, status: "shipped", arrives: "29 July" }),
    }),
  },
  stopWhen: stepCountIs(10),
});
for await (const piece of turns.textStream) process.stdout.write(piece);
