import { RolloutError } from "../errors.ts";
import type { Task } from "../task.ts";
import { textOfLine, type User, type UserLine, type UserSession } from "./user.ts";

/** What a scripted user says, in order; `{ text, leaves: true }` is a line to leave with. */
export type ScriptLines = readonly UserLine[] | ((task: Task) => readonly UserLine[]);

/** Settings of `scriptedUser()`. */
export interface ScriptedUserOptions {
  /** One list for every task, or each task's own. The first line opens the conversation. */
  readonly lines: ScriptLines;
}

/**
 * A user that says its lines in order whatever the agent says: free, fast and repeatable.
 *
 * `begin()` and `reply()` throw RolloutError `user/script-exhausted` where no line is left.
 */
export function scriptedUser({ lines }: ScriptedUserOptions): User {
  return {
    strategy: "scripted",
    repeatable: true,
    open: (task) => openScript(task.id, typeof lines === "function" ? lines(task) : lines),
  };
}

/**
 * The script for a task that has none: states the task's instruction as it is, agrees once, and
 * leaves. Not a simulation of a person, only enough to see an episode run from end to end.
 */
export function defaultScript(task: Task): readonly UserLine[] {
  const farewell = { text: "That is all. Thank you.", leaves: true } as const;
  return [task.instruction, "Yes, please go ahead.", farewell];
}

function openScript(taskId: string, lines: readonly UserLine[]): UserSession {
  let lineIndex = 0;
  async function nextLine({ signal }: { signal: AbortSignal }): Promise<UserLine> {
    signal.throwIfAborted();
    const line = lines[lineIndex];
    if (line === undefined) {
      throw new RolloutError(
        "user/script-exhausted",
        `Cannot answer for task ${taskId}: all ${lines.length} lines of the script are said, ` +
          `expected a longer script or a last line to leave with: {text, leaves: true}`,
      );
    }
    lineIndex += 1;
    return line;
  }
  return {
    begin: async (options) => textOfLine(await nextLine(options)),
    reply: (_agentText, options) => nextLine(options),
    usage: () => ({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 }),
  };
}
