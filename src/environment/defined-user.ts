import { UsageError } from "../errors.ts";
import type { Task } from "../task.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import type { User, UserLine } from "../user/user.ts";

/** The user of a defined environment if no model plays one. */
export type DefinedUser<Item> = User | readonly UserLine[] | ((task: Item) => readonly UserLine[]);

/** The user leaves without a word. */
const silence = { text: "", leaves: true } as const;

/**
 * Returns the user of a defined environment: the given `User`, or one that says the given lines in order and then
 * leaves without a word. Without lines, the user says the task's instruction and leaves at the first answer.
 * @throws UsageError for anything else.
 */
export function toUser(environment: string, user: DefinedUser<never> | undefined): User {
  if (isUser(user)) return user;
  if (user !== undefined && !Array.isArray(user) && typeof user !== "function") {
    throw new UsageError(
      `Cannot define environment ${environment}: its user is invalid, expected lines such as ` +
        '["Hello.", "Yes."], a function from a task to lines, or a user such as createScriptedUser()',
    );
  }
  return createScriptedUser({
    lines(task) {
      if (user === undefined) return [task.instruction, silence];
      const lines = typeof user === "function" ? user((task as Task<never>).data) : user;
      return [...lines, silence];
    },
  });
}

function isUser(value: unknown): value is User {
  return typeof value === "object" && value !== null && "open" in value;
}
