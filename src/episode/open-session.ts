import type { Outside } from "../outside.ts";
import type { Task } from "../task.ts";
import type { User, UserSession } from "../user/user.ts";
import { crossBriefly, crossLater } from "./boundary.ts";
import { checkSession } from "./check/check-foreign.ts";
import type { CallWatch } from "./turn/call-watch.ts";

/** The conversation that `openSession()` opens. */
export interface SessionTerms {
  readonly user: User;
  readonly task: Task;
  readonly seed: number;
  readonly outside?: Outside;
  /** The user's time limit, in milliseconds. */
  readonly timeoutMs: number;
  /** Wraps the session. Errors of the session's own members count as the user's. Default: does not wrap it. */
  readonly wrap?: (session: UserSession) => UserSession;
}

/**
 * Opens a user's conversation about a task, and checks the session.
 *
 * @throws RolloutError with party `user`.
 */
export async function openSession(watch: CallWatch, terms: SessionTerms): Promise<UserSession> {
  const { user, task, seed, outside, timeoutMs, wrap = (session) => session } = terms;
  const { strategy } = user;
  const call = {
    party: "user",
    what: `open a conversation about task ${task.id} with user ${strategy}`,
    timeoutMs,
  } as const;
  const opened = await crossLater(watch, call, () =>
    user.open(task, { seed, ...(outside !== undefined && { outside }) }),
  );
  return await crossBriefly(
    watch,
    () => call,
    () => wrap(checkSession(opened, `user.open() of ${strategy} for task ${task.id}`)),
  );
}
