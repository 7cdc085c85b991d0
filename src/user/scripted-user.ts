import { RolloutError } from "../errors.ts";
import type { Task } from "../task.ts";
import type { User, UserSession } from "./user.ts";
import { STOP_MARKER } from "./user.ts";

/** What a scripted user says, in order. */
export type ScriptLines = readonly string[] | ((task: Task) => readonly string[]);

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
    open: (task) => openScript(task.id, typeof lines === "function" ? lines(task) : lines),
  };
}

/**
 * The script for a task that has none: states the task's instruction as it is, agrees once, and
 * leaves. Not a simulation of a person, only enough to see an episode run from end to end.
 */
export function defaultScript(task: Task): readonly string[] {
  return [task.instruction, "Yes, please go ahead.", STOP_MARKER];
}

function openScript(taskId: string, lines: readonly string[]): UserSession {
  let lineIndex = 0;
  async function nextLine({ signal }: { signal: AbortSignal }): Promise<string> {
    signal.throwIfAborted();
    const line = lines[lineIndex];
    if (line === undefined) {
      throw new RolloutError(
        "user/script-exhausted",
        `Cannot answer for task ${taskId}: all ${lines.length} lines of the script are said, ` +
          `expected a longer script or one whose last line is ${STOP_MARKER}`,
      );
    }
    lineIndex += 1;
    return line;
  }
  return {
    begin: nextLine,
    reply: (_agentText, options) => nextLine(options),
    usage: () => ({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 }),
  };
}
