import { UsageError } from "../errors.ts";
import type { Task } from "../task.ts";
import { scriptedUser } from "../user/scripted-user.ts";
import type { User, UserLine } from "../user/user.ts";

/** Who speaks for the users of a defined environment where no model does. */
export type DefinedUser<Item> = User | readonly UserLine[] | ((task: Item) => readonly UserLine[]);

/** Leaves without a word. */
const silence = { text: "", leaves: true } as const;

/**
 * The user of a defined environment: a user that is one, or lines that are said in order; after the
 * last one they leave without a word. Without any, they say the task's instruction and leave at the
 * first answer.
 *
 * @throws UsageError for anything else.
 */
export function toUser(environment: string, user: DefinedUser<never> | undefined): User {
  if (isUser(user)) return user;
  if (user !== undefined && !Array.isArray(user) && typeof user !== "function") {
    throw new UsageError(
      `Cannot define environment ${environment}: its user is no user, expected lines such as ` +
        '["Hello.", "Yes."], a function from a task to lines, or a user such as scriptedUser()',
    );
  }
  return scriptedUser({
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
