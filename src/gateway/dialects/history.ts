import type { ClientAssistant, ClientMessage } from "../conversation.ts";

/** What the items of a conversation come to, as far as they are read. */
export interface History {
  readonly messages: readonly ClientMessage[];
  /** How many items were read. */
  readonly itemCount: number;
  /** A turn that is not among the messages yet: the next item may belong to it. */
  readonly openTurn?: ClientAssistant;
}

/** Before the first item. */
export const noHistory: History = { messages: [], itemCount: 0 };

/** The messages of a conversation that ends there. */
export function messagesOf({ messages, openTurn }: History): readonly ClientMessage[] {
  return openTurn === undefined ? messages : [...messages, openTurn];
}
