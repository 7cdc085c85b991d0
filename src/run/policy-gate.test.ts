import { describe, expect, test } from "vitest";
import { preparedEngine } from "../episode/lamp-episode.fixture.ts";
import { PolicyGate } from "./policy-gate.ts";

const request = {
  ...{ promptIds: [1], sampling: {}, maxNewTokens: 1, stopTokenIds: [2] },
  ...{ requestId: "r", sessionId: "s" },
};

describe("PolicyGate", () => {
  test.each(["hold", "interrupt"] as const)(
    "does not wait (%s) for a call that its caller gave up and the engine never ends",
    async (mode) => {
      const gate = new PolicyGate({
        ...preparedEngine([]),
        generate: () => new Promise<never>(() => {}),
      });
      const caller = new AbortController();
      void gate.engine.generate(request, { signal: caller.signal });
      const closed = gate.close(mode);
      expect(gate.runningCount).toBe(1);
      caller.abort();
      await closed;
      expect(gate.runningCount).toBe(0);
    },
  );
});
