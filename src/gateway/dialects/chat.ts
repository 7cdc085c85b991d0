import type { GatewayDialect } from "./dialect.ts";
import { decodeChat, readChatHistory } from "./chat-decode.ts";
import { ChatWriter, encodeChatReply } from "./chat-encode.ts";
import { openAiError } from "./openai-error.ts";

/** OpenAI's Chat Completions, as vLLM and SGLang serve them too. */
export const chatDialect: GatewayDialect = {
  name: "chat",
  path: "/chat/completions",
  idPrefixes: { call: "call_", reply: "chatcmpl-" },
  historyField: "messages",
  readHistory: readChatHistory,
  decode: decodeChat,
  encodeReply: encodeChatReply,
  createWriter: (start) => new ChatWriter(start),
  encodeError: openAiError,
};
