import { describe, expect, test } from "vitest";
import { preparedEngine, says } from "../episode/lamp-episode.fixture.ts";
import { PolicyControl, type RemoteSampling } from "./policy-control.ts";
import { ServiceError } from "./service-error.ts";

/** Workers whose store refuses the next request to pause. */
function refusingRemote(): { readonly sent: string[]; readonly remote: RemoteSampling } {
  const sent: string[] = [];
  let isRefused = false;
  const remote: RemoteSampling = {
    close: async (mode) => {
      sent.push(mode);
      if (isRefused) return;
      isRefused = true;
      await Promise.reject(new Error("MISCONF Redis is unable to persist to disk"));
    },
    open: () => void sent.push("open"),
    announce: (version) => void sent.push(`version ${version}`),
  };
  return { sent, remote };
}

const request = {
  promptIds: [1],
  sampling: {},
  maxNewTokens: 90,
  stopTokenIds: [2],
  requestId: "r",
  sessionId: "s",
};

describe("workers that cannot be paused", () => {
  test.each(["update", "pause", "repair"] as const)(
    "%s() is refused, and no worker stays paused",
    async (what) => {
      const { sent, remote } = refusingRemote();
      const policy = new PolicyControl(preparedEngine([says("hi")]), { remote });
      const done: string[] = [];
      const work = {
        update: () =>
          policy.update(1, {
            check: () => true,
            update: () => Promise.resolve(done.push("updated") > 0),
          }),
        pause: async () => await policy.pause(() => Promise.resolve(void done.push("noted"))),
        repair: async () => await policy.repair(() => Promise.resolve(void done.push("repaired"))),
      }[what];
      const refused: unknown = await work().catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(ServiceError);
      expect(refused).toMatchObject({
        code: "engine-failed",
        message:
          "Sampling cannot be paused at the workers: MISCONF Redis is unable to persist to disk; " +
          "all is as it was",
      });
      expect([policy.isPaused, policy.version, done]).toEqual([false, undefined, []]);
      expect(sent).toEqual(["interrupt", "open"]);
      await policy.engineAt()!.generate(request);
      // The next call is taken.
      await work();
      expect(done).toHaveLength(1);
    },
  );

  test("a pause that was there before stays", async () => {
    const sent: string[] = [];
    const remote: RemoteSampling = {
      close: async (mode) => {
        sent.push(mode);
        if (sent.length === 2) await Promise.reject(new Error("OOM"));
      },
      open: () => void sent.push("open"),
      announce: () => {},
    };
    const policy = new PolicyControl(preparedEngine([]), { remote });
    await policy.pause(() => Promise.resolve());
    await expect(policy.pause(() => Promise.resolve())).rejects.toThrow("OOM");
    expect([sent, policy.isPaused]).toEqual([["interrupt", "interrupt"], true]);
  });
});
