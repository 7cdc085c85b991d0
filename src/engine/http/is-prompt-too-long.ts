import { RolloutError } from "../../errors.ts";

/** True if an engine refused a request because its prompt leaves no room for output. */
export function isPromptTooLong(error: unknown): boolean {
  return error instanceof RolloutError && error.code === "engine/prompt-too-long";
}
