import { createChatConnection, type ChatAddress } from "../../engine/chat/chat-connection.ts";
import type { ChatRequest } from "./chat-model.ts";
import { callEndpoint } from "./endpoint-call.ts";
import type { LanguageModelAnswer } from "./language-model-call.ts";

/** The address of a chat model on an OpenAI-compatible server. */
export interface ChatEndpoint extends ChatAddress {
  /** The server's name for the model. */
  readonly model: string;
}

/** A source of chat completions. */
export interface ChatSource {
  /** The model's name for error messages and records. */
  readonly name: string;
  /**
   * Makes one call.
   *
   * @throws an error that `classifyChatError()` can classify.
   */
  call(request: ChatRequest, options: { signal: AbortSignal }): Promise<LanguageModelAnswer>;
  /** Closes all connections. Calls in progress fail. */
  close(): Promise<void>;
}

/**
 * Creates a source for an endpoint, without making a request. Keys are read once, and only from environment variables.
 * @throws UsageError for an invalid URL, and for an environment variable that is not set.
 *
 * @throws UsageError for an invalid URL, and for an environment variable that is not set.
 */
export function chatEndpointSource(
  endpoint: ChatEndpoint,
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Maximum number of open connections. */
    readonly maxConcurrent: number;
  },
): ChatSource {
  const { env, maxConcurrent: maxConnections } = options;
  const { model } = endpoint;
  const connection = createChatConnection(endpoint, { env, maxConnections });
  return {
    name: model,
    call: (request, { signal }) => callEndpoint(connection, { ...request, model }, { signal }),
    close: () => connection.transport.close(),
  };
}
