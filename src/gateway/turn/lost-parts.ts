import type { AssistantMessage, Message } from "../../message.ts";
import { findText } from "../../renderer/message-texts.ts";
import type { TurnForms } from "./turn-forms.ts";

/** Differences between earlier turns and a prompt, caused by the chat template. */
export type PromptNote =
  /** The text of a turn is left out or changed. */
  | "text-not-shown"
  /** The reasoning of a turn is left out or changed. */
  | "reasoning-not-shown"
  /** The text of a turn is shown after its calls. */
  | "text-after-calls";

/**
 * Finds the differences between a prompt and the assistant turns among its messages. A turn's parts are searched after
 * the text of the turn before. The search for a kind ends with the first missing part, because a failed search reads
 * the rest of the prompt.
 *
 * @param prompt - The text that the template made of the messages.
 */
export function findLostParts(
  prompt: string,
  messages: readonly Message[],
  { putsCallsFirst }: TurnForms,
): readonly PromptNote[] {
  const notes = new Set<PromptNote>();
  let from = 0;
  /** The ends of the parts that were found last. Turns may repeat a part that stands far ahead. */
  const ends = new Map<string, number>();
  const find = (note: PromptNote, part: string): number => {
    if (notes.has(note)) return from;
    const known = ends.get(part) ?? 0;
    if (known - part.length * longestEscape >= from) return known;
    const end = findText(prompt, part, from);
    if (end === undefined) notes.add(note);
    else ends.set(part, end);
    return end ?? from;
  };
  for (const { content, reasoning = "", toolCalls } of messages.filter(isAssistant)) {
    if (reasoning !== "") find("reasoning-not-shown", reasoning);
    if (content.trim() === "") continue;
    from = find("text-not-shown", content);
    if (putsCallsFirst && toolCalls !== undefined) notes.add("text-after-calls");
  }
  return [...notes];
}

/** Maximum length of a character in JSON, in UTF-16 units. */
const longestEscape = 6;

function isAssistant(message: Message): message is AssistantMessage {
  return message.role === "assistant";
}
