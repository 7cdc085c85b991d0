import { RolloutError } from "../../errors.ts";

/** Whether an engine refused a request because there is no room behind its prompt. */
export function isPromptTooLong(error: unknown): boolean {
  return error instanceof RolloutError && error.code === "engine/prompt-too-long";
}
