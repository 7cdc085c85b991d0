import { expect, test } from "vitest";
import { RolloutError } from "../../errors.ts";
import type { UserSession } from "../../user/user.ts";
import { noSpending } from "../../user/chat/add-spending.ts";
import { UserCallTracker } from "./user-call-tracker.ts";

function sessionThat(reply: UserSession["reply"]): UserSession {
  const session: UserSession = {
    begin: async () => "Lamp on, please.",
    reply,
    usage: () => noSpending,
  };
  return new UserCallTracker({ taskId: "lamp/1", strategy: "slow", timeoutMs: 60_000 }).watched(
    session,
  );
}

test("a world that cancels a request to the user gets the reason", async () => {
  const givenUp = new AbortController();
  const session = sessionThat(
    async (_text, { signal }) =>
      await new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      }),
  );
  const heard = session.reply("Which one?", { signal: givenUp.signal });
  const reason = new Error("(silence)");
  givenUp.abort(reason);
  await expect(heard).rejects.toBe(reason);
});

test("an error of a user is the user's failure", async () => {
  const session = sessionThat(() => Promise.reject(new Error("gone")));
  const heard = session.reply("Which one?", { signal: new AbortController().signal });
  await expect(heard).rejects.toThrow(RolloutError);
  await expect(heard).rejects.toMatchObject({ code: "user/exception" });
});

test("of several concurrent requests, the running one is waited for", async () => {
  const hearing = new UserCallTracker({ taskId: "lamp/1", strategy: "slow", timeoutMs: 60_000 });
  let waitCount = 0;
  const waited = hearing.watchCall({
    waitWithin: () => {
      waitCount++;
      return () => {};
    },
  });
  const session = hearing.watched({
    begin: () => new Promise<never>(() => {}),
    reply: () => new Promise<never>(() => {}),
    usage: () => noSpending,
  });
  const [first, second] = [new AbortController(), new AbortController()];
  void session.begin({ signal: first.signal });
  void session.reply("Which one?", { signal: second.signal });
  expect(waited()?.what).toBe("hear the user's reply in task lamp/1");
  second.abort();
  expect(waited()?.what).toBe("hear the user's first line of task lamp/1");
  first.abort();
  expect(waited()).toBeUndefined();
  void session.reply("Anyone?", { signal: second.signal });
  expect(waited()).toBeUndefined();
  expect(waitCount).toBe(2);
});
