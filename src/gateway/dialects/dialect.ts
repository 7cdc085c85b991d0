import type { ClientError } from "../client-error.ts";
import type { History } from "./history.ts";
import type {
  RequestedTurn,
  ClientMessage,
  Reply,
  ReplyEvent,
  ReplyFinish,
  ReplyStart,
  ReplyToken,
  ReplyUsage,
  ToolSet,
} from "../conversation.ts";

/** The name of a wire protocol. */
export type DialectName = "chat" | "responses" | "messages";

/** Lookups of earlier replies and tools that a request refers to by id. */
export interface Recollection {
  /**
   * Returns the item with the id, as sent in a reply, or `undefined` if it is not from this
   * session.
   */
  item?(id: string): unknown;
  /**
   * Returns the id of the reply that contained the item, or `undefined` if it is not from this
   * session.
   */
  replyOf?(itemId: string): string | undefined;
  /**
   * Returns the text of the reply that made the call, or `undefined` if it is not from this
   * session.
   */
  textBeside?(callId: string): string | undefined;
  /** Returns the cached tool set of a list, or the result of `read`. */
  toolsOf?(dialect: DialectName, list: readonly unknown[], read: () => ToolSet): ToolSet;
  /** Returns the conversation up to and including the reply with the id. */
  conversationOf?(replyId: string): readonly ClientMessage[] | undefined;
}

/** The end of a turn. */
export interface ReplyEnd {
  readonly finish: ReplyFinish;
  readonly usage: ReplyUsage;
  readonly tokens?: readonly ReplyToken[];
}

/** Converts the events of one reply to server-sent events. Each method returns the text to send. */
export interface StreamWriter {
  start(): string;
  write(event: ReplyEvent): string;
  /** Returns the final events of the stream. */
  end(end: ReplyEnd): string;
  /** Returns the final events of a stream that failed after its start. */
  fail(error: ClientError): string;
  /** Returns an event that keeps the connection open while there is no output. */
  keepAlive(): string;
}

/** A wire protocol, as pure functions. */
export interface GatewayDialect {
  readonly name: DialectName;
  /** The path of its requests after `/v1`. */
  readonly path: string;
  /** The prefixes of the ids of calls and replies. */
  readonly idPrefixes: { readonly call: string; readonly reply: string };
  /** True if a reply's usage counts the tokens of the reasoning. */
  readonly countsReasoning: boolean;
  /** The field that contains the conversation's items. */
  readonly historyField: string;
  /**
   * Reads items of a conversation, appending to `before`.
   *
   * @throws ClientError `invalid`, with the path in the body.
   */
  readHistory(items: readonly unknown[], recollection: Recollection, before: History): History;
  /**
   * Reads the body of a request for a turn.
   *
   * @param history - The result of `readHistory()` for the conversation's field, if the caller has
   *   it. Then the field is not read again.
   * @throws ClientError `invalid`, with the path in the body.
   */
  decode(body: unknown, recollection?: Recollection, history?: History): RequestedTurn;
  encodeReply(reply: Reply): object;
  createWriter(start: ReplyStart): StreamWriter;
  encodeError(error: ClientError): object;
}

/** Formats a server-sent event. */
export function sseEvent(data: object, name?: string): string {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** A comment, which readers of server-sent events ignore. */
export const sseComment = ": waiting\n\n";
