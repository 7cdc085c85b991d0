import { RolloutError, UsageError } from "../errors.ts";
import type { Task } from "../task.ts";
import { readLine } from "../user/read-line.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import type { User, UserLine } from "../user/user.ts";
import { describePart } from "./reward-parts.ts";

/** The user of a defined environment if no model plays one. */
export type DefinedUser<Item> =
  | User<Item>
  | readonly UserLine[]
  | ((task: Item) => readonly UserLine[]);

/** The last line of a user that leaves without a word. */
const silence = { text: "", leaves: true } as const;

/**
 * Returns the user of a defined environment: the given `User`, or one that says the given lines in order and then
 * leaves without a word. Without lines, the user says the task's instruction and leaves at the first answer.
 * @throws UsageError for anything else.
 */
export function toUser<Item>(environment: string, user: DefinedUser<Item> | undefined): User<Item> {
  if (isUser(user)) return user;
  if (user === undefined) {
    return createScriptedUser({ lines: ({ instruction }) => [instruction, silence] });
  }
  if (typeof user === "function") {
    return createScriptedUser({
      lines: (task: Task<Item>) => [...drawnLines(environment, user, task), silence],
    });
  }
  const fault = linesFault(user);
  if (fault !== undefined) {
    throw new UsageError(
      `Cannot define environment ${environment}: its user is invalid (${fault}), expected lines such as ` +
        '["Hello.", "Yes."], a function from a task to lines, or a user such as createScriptedUser()',
    );
  }
  return createScriptedUser({ lines: [...user, silence] });
}

/**
 * Returns the lines of the author's `user()` for a task.
 *
 * @throws RolloutError `user/bad-line` if the author's function returns no lines.
 */
function drawnLines<Item>(
  environment: string,
  user: (task: Item) => readonly UserLine[],
  { id, data }: Task<Item>,
): readonly UserLine[] {
  const lines = user(data);
  const fault = linesFault(lines);
  if (fault === undefined) return lines;
  throw new RolloutError(
    "user/bad-line",
    `Cannot use the result of user() of ${environment} for task ${id}: ${fault}, expected lines such as ["Hello.", "Yes."]`,
  );
}

/** Describes the reason why a value is no list of lines. */
function linesFault(lines: unknown): string | undefined {
  if (lines === undefined) return "it is nothing (a forgotten return?)";
  if (lines instanceof Promise) return "it is a promise";
  if (!Array.isArray(lines)) return `it is ${describePart(lines)}`;
  if (lines.length === 0) return "it has no lines";
  const wrong = lines.findIndex((line) => readLine(line) === undefined);
  return wrong < 0 ? undefined : `line ${wrong} is ${describePart(lines[wrong])}`;
}

function isUser<Item>(value: DefinedUser<Item> | undefined): value is User<Item> {
  return typeof value === "object" && value !== null && "open" in value;
}
