import { chatDialect } from "./chat.ts";
import type { GatewayDialect, DialectName } from "./dialect.ts";
import { messagesDialect } from "./messages.ts";
import { responsesDialect } from "./responses.ts";

/** Every dialect by name. */
export const dialects: Readonly<Record<DialectName, GatewayDialect>> = {
  chat: chatDialect,
  responses: responsesDialect,
  messages: messagesDialect,
};
