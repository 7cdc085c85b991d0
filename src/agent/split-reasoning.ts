import type { AssistantMessage } from "../message.ts";

/** Splits a turn's text into reasoning and the rest. */
export type SplitReasoning = (
  text: string,
  options: { readonly opened: boolean },
) => { readonly reasoning: string; readonly rest: string };

/**
 * Splits a turn's text into reasoning and the rest.
 *
 * @param split - Absent: the complete text is the rest.
 */
export function withoutReasoning(
  text: string,
  split: SplitReasoning | undefined,
  opened: boolean,
): { readonly reasoning: string; readonly rest: string } {
  return split?.(text, { opened }) ?? { reasoning: "", rest: text };
}

/** Returns the message with its reasoning, unless that is blank. */
export function withReasoning(message: AssistantMessage, reasoning: string): AssistantMessage {
  return reasoning.trim() === "" ? message : { ...message, reasoning };
}
