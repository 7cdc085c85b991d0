import type { ChatConnection } from "../../engine/chat/chat-connection.ts";
import { isCutReason, postCompletion, readChatUsage } from "../../engine/chat/post-completion.ts";
import type { ChatFinishReason, ChatRequest } from "./chat-model.ts";
import { readContent } from "./read-content.ts";
import type { LanguageModelAnswer } from "./language-model-call.ts";

/**
 * Calls a server's `/chat/completions` once, for a text.
 *
 * @throws as `postCompletion()`.
 */
export async function callEndpoint(
  connection: ChatConnection,
  { model, messages, temperature, maxTokens, seed }: ChatRequest & { readonly model: string },
  { signal }: { signal: AbortSignal },
): Promise<LanguageModelAnswer> {
  // `JSON.stringify()` omits undefined members.
  const body = JSON.stringify({ model, messages, temperature, max_tokens: maxTokens, seed });
  const completion = await postCompletion(connection, body, { signal });
  const usage = readChatUsage(completion.body["usage"]);
  return {
    ...readContent(completion.message),
    finishReason: toFinishReason(completion.finishReason),
    usage: usage && { cachedInputTokenCount: 0, ...usage },
  };
}

function toFinishReason(reason: unknown): ChatFinishReason {
  if (reason === "content_filter") return "content-filter";
  if (isCutReason(reason)) return "length";
  return reason === "stop" ? reason : "other";
}
