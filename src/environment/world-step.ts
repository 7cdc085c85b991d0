import { isLeaving, textOfLine, type UserSession } from "../user/user.ts";
import type { Step } from "./environment.ts";
import type { ToolOutcome } from "./tool-call.ts";

/** Says the agent's message to the user. Returns the user's answer. */
export async function sayToUser(
  user: UserSession,
  content: string,
  signal: AbortSignal,
): Promise<Step> {
  const line = await user.reply(content, { signal });
  const step = { observation: textOfLine(line), from: "user", source: "user" } as const;
  return isLeaving(line) ? { ...step, done: "user-left" } : step;
}

/**
 * Returns the step of a tool's call.
 *
 * @param isFinished - True if the episode is finished, for another reason than a tool that ends it.
 */
export function stepOfCall(
  source: string,
  { text, isError, ends }: ToolOutcome,
  isFinished: boolean,
): Step {
  return {
    observation: text,
    from: "tool",
    source,
    ...(isError && { isError }),
    ...(ends ? { done: "terminal-tool" } : isFinished ? { done: "finished" } : {}),
  };
}
