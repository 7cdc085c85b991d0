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

/** The way in which a dialect spreads a turn over several items. */
export interface TurnForm {
  /** Decides for a turn that has made no call yet; one that has made a call is open until a result comes. */
  readonly goesOn: (turn: ClientAssistant, next: ClientAssistant) => boolean;
  /** Text between the texts of two items. */
  readonly separator: string;
}

/**
 * Adds messages to a history. All that an assistant says and calls before the results of its calls come
 * is one turn: some clients send parallel calls back in messages of their own.
 */
export function extendHistory(
  before: History,
  items: Iterable<readonly ClientMessage[]>,
  { goesOn, separator }: TurnForm,
): History {
  const messages = [...before.messages];
  let { openTurn: turn, itemCount } = before;
  for (const item of items) {
    itemCount += 1;
    for (const message of item) {
      if (turn !== undefined) {
        if (message.role === "assistant" && (turn.calls.length > 0 || goesOn(turn, message))) {
          turn = joinTurns(turn, message, separator);
          continue;
        }
        messages.push(turn);
        turn = undefined;
      }
      if (message.role === "assistant") turn = message;
      else messages.push(message);
    }
  }
  return { messages, itemCount, ...(turn === undefined ? {} : { openTurn: turn }) };
}

/** The form of dialects in which a message is a turn. */
export const oneMessageTurns: TurnForm = { goesOn: () => false, separator: "\n" };

function joinTurns(turn: ClientAssistant, next: ClientAssistant, separator: string) {
  const reasoning = (turn.reasoning ?? "") + (next.reasoning ?? "");
  const between = turn.content === "" || next.content === "" ? "" : separator;
  return {
    role: "assistant",
    content: turn.content + between + next.content,
    ...(reasoning === "" ? {} : { reasoning }),
    calls: [...turn.calls, ...next.calls],
    marks: [...turn.marks, ...next.marks],
  } as const satisfies ClientAssistant;
}
