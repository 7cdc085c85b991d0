import type { GatewayDialect } from "./dialect.ts";
import { decodeChat, readChatHistory } from "./chat-decode.ts";
import { ChatWriter, encodeChatReply } from "./chat-encode.ts";
import { openAiError } from "./openai-error.ts";

/** The dialect of OpenAI's Chat Completions, which vLLM and SGLang serve too. */
export const chatDialect: GatewayDialect = {
  name: "chat",
  path: "/chat/completions",
  idPrefixes: { call: "call_", reply: "chatcmpl-" },
  countsReasoning: false,
  historyField: "messages",
  readHistory: readChatHistory,
  decode: decodeChat,
  encodeReply: encodeChatReply,
  createWriter: (start) => new ChatWriter(start),
  encodeError: openAiError,
};
