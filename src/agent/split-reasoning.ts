import type { AssistantMessage } from "../message.ts";

/** Splits a turn's text into reasoning and the rest. */
export type SplitReasoning = (
  text: string,
  options: { readonly opened: boolean },
) => { readonly reasoning: string; readonly rest: string };

/**
 * The turn's text without its reasoning, as far as it can be told from the rest.
 *
 * @param split - Absent: the whole text is read, reasoning included.
 */
export function withoutReasoning(
  text: string,
  split: SplitReasoning | undefined,
  opened: boolean,
): { readonly reasoning: string; readonly rest: string } {
  return split?.(text, { opened }) ?? { reasoning: "", rest: text };
}

/** The turn as a message that says what was thought before it, where anything was. */
export function withReasoning(message: AssistantMessage, reasoning: string): AssistantMessage {
  return reasoning.trim() === "" ? message : { ...message, reasoning };
}
