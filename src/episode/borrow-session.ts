import { callThrough, type Outside } from "../outside.ts";
import type { UserSession } from "../user/user.ts";
import type { Play } from "./play.ts";

/** A user who is not repeatable, as an episode borrows it. */
interface BorrowedUser {
  /**
   * What the user calls. Of that which it calls to find a line nothing is recorded, as the line is: nobody
   * would ask for it when the episode is played again.
   */
  readonly outside: Outside;
  /** For how many lines it is asked: a world may ask for several at once. */
  askedCount: number;
}

/** What a user is given to call: by itself that is recorded, unless its lines are. */
export function borrowUser({ outside }: Pick<Play, "outside">): BorrowedUser {
  const borrowed: BorrowedUser = {
    askedCount: 0,
    outside: (what, work) =>
      borrowed.askedCount > 0 ? callThrough(what, work) : outside.user(what, work),
  };
  return borrowed;
}

/**
 * A conversation whose lines themselves are recorded, because the user does not say the same again: the
 * recording answers in their place where there is one.
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
