import { expect, test } from "vitest";
import { ClientError } from "../client-error.ts";
import { defaultIgnore } from "../tree/message-keys.ts";
import { defaultSessionLimits } from "./session-limits.ts";
import { hashToken, SessionStore } from "./session-store.ts";

test("SessionStore knows the newest sessions that are over, and a bounded number of them", () => {
  const store = new SessionStore({
    rules: { ignore: defaultIgnore, strictness: "calls" },
    limits: defaultSessionLimits,
    ...{ clock: { now: () => 0 }, now: () => 0 },
  });
  for (let count = 0; count <= 100_000; count++) {
    store.restoreFinished({
      ...{ sessionId: `s${count}`, tokenHash: hashToken(`token ${count}`), taskId: "t" },
      ...{ taskIndex: 0, groupId: "t", sampleIndex: count, seed: 0, metadata: {}, openedAtMs: 0 },
    });
  }
  expect(store.byToken("token 0")).toBe(undefined);
  expect(() => store.byToken("token 1")).toThrow(ClientError);
  expect(() => store.byToken("token 100000")).toThrow("Session s100000 is finished");
});
