import { RolloutError } from "../errors.ts";
import type { Task } from "../task.ts";
import { textOfLine, type User, type UserLine, type UserSession } from "./user.ts";

/**
 * The lines of a scripted user in order. `{ text, leaves: true }` is a line with which the user
 * leaves.
 */
export type ScriptLines<Data = unknown> =
  | readonly UserLine[]
  | ((task: Task<Data>) => readonly UserLine[]);

/** Settings of `createScriptedUser()`. */
export interface ScriptedUserOptions<Data = unknown> {
  /**
   * One list for every task, or a function from task to list. The first line starts the
   * conversation.
   */
  readonly lines: ScriptLines<Data>;
}

/**
 * Creates a user that says its lines in order, independent of the agent. It is repeatable and costs
 * nothing.
 *
 * `begin()` and `reply()` throw RolloutError `user/script-exhausted` after the last line.
 */
export function createScriptedUser<Data = unknown>({
  lines,
}: ScriptedUserOptions<Data>): User<Data> {
  return {
    strategy: "scripted",
    repeatable: true,
    open: (task) => openScript(task.id, typeof lines === "function" ? lines(task) : lines),
  };
}

/**
 * Returns a script for any task: the user states the instruction, agrees once, and leaves. It does
 * not simulate a person; it lets an episode run from start to end.
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
        `Cannot answer for task ${taskId}: the script has only ${lines.length} lines, ` +
          `expected a longer script or a last line that leaves: {text, leaves: true}`,
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
