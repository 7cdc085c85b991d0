import type { ChatTurn } from "./chat-turn.ts";

/** A turn's content and calls as one text, for people. */
export interface ChatTurnText {
  readonly text: string;
  /** The range of each call in `text`, in UTF-16 code units, end exclusive. */
  readonly spans: readonly (readonly [start: number, end: number])[];
}

/** Writes a turn as text: its content, then each call in a line of its own, as `name arguments`. */
export function writeChatTurn({
  content,
  toolCalls,
}: Pick<ChatTurn, "content" | "toolCalls">): ChatTurnText {
  let text = content;
  const spans = toolCalls.map(({ name, argumentsText }) => {
    if (text !== "") text += "\n";
    const start = text.length;
    text += name === undefined ? argumentsText : `${name} ${argumentsText}`;
    return [start, text.length] as const;
  });
  return { text, spans };
}
