import type { Message } from "../../message.ts";
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
 * Finds the differences between a prompt and the assistant turns among its messages. Each search starts after the part
 * before. The search for a kind ends with the first missing part, because a failed search reads the rest of the
 * prompt.
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
  const require = (note: PromptNote, part: string): void => {
    if (notes.has(note)) return;
    const end = findText(prompt, part, from);
    if (end === undefined) notes.add(note);
    else from = end;
  };
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    require("reasoning-not-shown", message.reasoning ?? "");
    require("text-not-shown", message.content);
    const hasBoth = message.content.trim() !== "" && message.toolCalls !== undefined;
    if (putsCallsFirst && hasBoth) notes.add("text-after-calls");
  }
  return [...notes];
}
