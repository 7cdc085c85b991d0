import type { GatewayDialect } from "./dialect.ts";
import { decodeMessages, readMessagesHistory } from "./messages-decode.ts";
import { anthropicError, encodeMessagesReply, MessagesWriter } from "./messages-encode.ts";

/** The dialect of Anthropic's Messages. */
export const messagesDialect: GatewayDialect = {
  name: "messages",
  path: "/messages",
  idPrefixes: { call: "toolu_", reply: "msg_" },
  countsReasoning: false,
  historyField: "messages",
  readHistory: readMessagesHistory,
  decode: decodeMessages,
  encodeReply: encodeMessagesReply,
  createWriter: (start) => new MessagesWriter(start),
  encodeError: anthropicError,
};
