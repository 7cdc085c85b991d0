import type { ClientError } from "../client-error.ts";
import type { History } from "./history.ts";
import type {
  AskedTurn,
  ClientMessage,
  Reply,
  ReplyEvent,
  ReplyFinish,
  ReplyStart,
  ReplyToken,
  ReplyUsage,
  ToolSet,
} from "../conversation.ts";

/** The languages that clients speak. */
export const dialectNames = ["chat", "responses", "messages"] as const;

/** A wire protocol that the gateway speaks. */
export type DialectName = (typeof dialectNames)[number];

/** What a decoder may look up: what we ourselves told the client earlier, and it names by an id. */
export interface Recollection {
  /** The item of that id, as it stood in a reply; `undefined` where it is none of ours. */
  item?(id: string): unknown;
  /** The id of the reply that an item of that id stood in; `undefined` where it is none of ours. */
  replyOf?(itemId: string): string | undefined;
  /** The text of the reply that made the call of that id; `undefined` where it is none of ours. */
  textBeside?(callId: string): string | undefined;
  /** The tools of a list that the dialect has read before, or what `read` makes of it. */
  toolsOf?(dialect: DialectName, list: readonly unknown[], read: () => ToolSet): ToolSet;
  /** The whole conversation up to and with the reply of that id. */
  conversationOf?(replyId: string): readonly ClientMessage[] | undefined;
}

/** How a turn ended. */
export interface ReplyEnd {
  readonly finish: ReplyFinish;
  readonly usage: ReplyUsage;
  readonly tokens?: readonly ReplyToken[];
}

/** Turns the events of one reply into the bytes of its stream: each method returns what to send. */
export interface StreamWriter {
  start(): string;
  write(event: ReplyEvent): string;
  /** The terminal events. Nothing comes behind them. */
  end(end: ReplyEnd): string;
  /** Ends a stream that was begun and cannot be finished. */
  fail(error: ClientError): string;
  /** What keeps the connection and the client awake while nothing can be released. */
  keepAlive(): string;
}

/** One wire protocol: pure functions. */
export interface GatewayDialect {
  readonly name: DialectName;
  /** Where its requests go, below a base of `/v1`. */
  readonly path: string;
  /** What its calls' and replies' ids begin with. */
  readonly idPrefixes: { readonly call: string; readonly reply: string };
  /** The field that holds the conversation's items. */
  readonly historyField: string;
  /**
   * Reads items of a conversation: reading some and then the others comes to the same as reading all.
   *
   * @throws ClientError `invalid`, with the place in the body.
   */
  readHistory(items: readonly unknown[], recollection: Recollection, before: History): History;
  /**
   * @param history - What the items in the field of the conversation come to, where they are read
   *   already: then the field itself is passed over.
   * @throws ClientError `invalid`, with the place in the body.
   */
  decode(body: unknown, recollection?: Recollection, history?: History): AskedTurn;
  encodeReply(reply: Reply): object;
  createWriter(start: ReplyStart): StreamWriter;
  encodeError(error: ClientError): object;
}

/** One event of a stream in the format of server-sent events. */
export function sseEvent(data: object, name?: string): string {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** A comment: readers pass over it. */
export const sseComment = ": waiting\n\n";
