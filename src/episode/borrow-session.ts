import type { UserSession } from "../user/user.ts";
import type { Play } from "./play.ts";

/**
 * A conversation whose lines themselves are recorded, because the user does not say the same again: the
 * recording answers in their place where there is one.
 */
export function borrowSession(session: UserSession, { player, setup }: Play): UserSession {
  const outside = player.borrow(`the user ${setup.user.strategy} is not repeatable`);
  return {
    begin: async (options) =>
      await outside("user.begin()", async () => await session.begin(options)),
    reply: async (text, options) =>
      await outside("user.reply()", async () => await session.reply(text, options)),
    ...(session.retake && {
      retake: async (options) =>
        await outside("user.retake()", async () => await session.retake!(options)),
    }),
    usage: () => session.usage(),
  };
}
