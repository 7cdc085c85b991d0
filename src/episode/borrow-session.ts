import { callThrough, type Outside } from "../outside.ts";
import type { UserSession } from "../user/user.ts";
import type { Play } from "./play.ts";

/** The state of a user that is not repeatable (see `User.repeatable`). */
interface BorrowedUser {
  /**
   * The user's `outside`. Calls made for a line are not recorded, because the line itself is, and a replay does not
   * make them.
   */
  readonly outside: Outside;
  /** The number of lines that are being requested. A world may request several at the same time. */
  askedCount: number;
}

/** Returns the state of a user that is not repeatable, before its session opens. */
export function borrowUser({ outside }: Pick<Play, "outside">): BorrowedUser {
  const borrowed: BorrowedUser = {
    askedCount: 0,
    outside: (what, work) =>
      borrowed.askedCount > 0 ? callThrough(what, work) : outside.user(what, work),
  };
  return borrowed;
}

/**
 * Wraps the session of a user that is not repeatable: its lines are recorded, and come from the recording in a replay.
 */
export function borrowSession(
  session: UserSession,
  { outside: outsideCalls, setup }: Play,
  borrowed: BorrowedUser,
): UserSession {
  const outside = outsideCalls.bound(`the user ${setup.user.strategy} is not repeatable`);
  const ask = async <Line>(what: string, say: () => Promise<Line>): Promise<Line> =>
    await outside(what, async () => {
      borrowed.askedCount += 1;
      try {
        return await say();
      } finally {
        borrowed.askedCount -= 1;
      }
    });
  return {
    begin: async (options) => await ask("user.begin()", async () => await session.begin(options)),
    reply: async (text, options) =>
      await ask("user.reply()", async () => await session.reply(text, options)),
    ...(session.retake && {
      retake: async (options) =>
        await ask("user.retake()", async () => await session.retake!(options)),
    }),
    usage: () => session.usage(),
  };
}
