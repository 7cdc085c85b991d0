import { z } from "zod";
import type { ChatCallOptions } from "./ai-sdk-chat-model.ts";
import type { MeteredChatModel } from "./ai-sdk-chat-model.ts";
import { endpointChatModel } from "./ai-sdk-chat-model.ts";
import { parseConfig } from "./parse-config.ts";

const count = z.int().min(1);

const chatModelSchema = z.strictObject({
  baseUrl: z.string(),
  model: z.string().min(1),
  apiKeyEnv: z.string().min(1).exactOptional(),
  headers: z
    .record(z.string(), z.union([z.string(), z.strictObject({ env: z.string() })]))
    .exactOptional(),
  maxConcurrent: count.exactOptional(),
  maxWaiting: z.int().min(0).exactOptional(),
  timeoutMs: count.exactOptional(),
  maxAttempts: count.exactOptional(),
  firstPauseMs: z.number().min(0).exactOptional(),
  maxPauseMs: z.number().min(0).exactOptional(),
  budget: z
    .strictObject({
      maxTokenCount: count.exactOptional(),
      maxCostUsd: z.number().positive().exactOptional(),
    })
    .exactOptional(),
  prices: z
    .strictObject({
      inputUsd: z.number().min(0),
      outputUsd: z.number().min(0),
      cachedInputUsd: z.number().min(0).exactOptional(),
    })
    .exactOptional(),
});

/** A chat model as configuration: `ChatEndpoint` and `ChatCallOptions` together. JSON-able. */
export interface ChatModelConfig
  extends
    Pick<ChatCallOptions, "maxConcurrent" | "maxWaiting" | "timeoutMs" | "maxAttempts">,
    Pick<ChatCallOptions, "firstPauseMs" | "maxPauseMs" | "budget" | "prices"> {
  /** Base URL, such as `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** The environment variable that contains the API key. */
  readonly apiKeyEnv?: string;
  /** Headers of each call. `{ env }` names an environment variable with the value. */
  readonly headers?: Readonly<Record<string, string | { readonly env: string }>>;
}

/**
 * Creates a chat model from configuration. Unknown fields are errors.
 *
 * @throws UsageError that names the field. `place` is the configuration's path in the message.
 */
export function chatModelFromConfig(
  config: unknown,
  options: {
    readonly place: string;
    readonly party: "user" | "grader";
    readonly env: Readonly<Record<string, string | undefined>>;
  },
): MeteredChatModel {
  const { place, party, env } = options;
  const { baseUrl, model, apiKeyEnv, headers, ...calls } = parseConfig(chatModelSchema, config, {
    what: "use the chat model",
    place,
  });
  const endpoint = {
    baseUrl,
    model,
    ...(apiKeyEnv !== undefined && { apiKeyEnv }),
    ...(headers !== undefined && { headers }),
  };
  return endpointChatModel({ ...calls, endpoint, env, party });
}
