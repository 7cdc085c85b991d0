import { describe, expect, test } from "vitest";
import type { Generation } from "../engine/engine.ts";
import { preparedEngine } from "../episode/lamp-episode.fixture.ts";
import { RolloutError } from "../errors.ts";
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

  test("keeps what was sampled before an update where the engine takes no more behind it", async () => {
    const piece = { requestId: "r", tokenCount: 2, policyVersion: "1", finish: "abort" } as const;
    const part: Generation = {
      ...{ outputIds: [7, 8], logprobs: [-1, -1], pieces: [piece], discarded: [] },
      finish: { type: "length" },
    };
    const tooLong = new RolloutError("engine/prompt-too-long", "no room");
    const asked: number[][] = [];
    const gate = new PolicyGate({
      ...preparedEngine([]),
      async generate({ promptIds }, options) {
        asked.push([...promptIds]);
        if (asked.length > 1) throw tooLong;
        await new Promise<void>((resolve) => {
          options?.cutShort?.addEventListener("abort", () => resolve());
        });
        return part;
      },
    });
    const generating = gate.engine.generate({ ...request, maxNewTokens: 9 });
    await gate.close("interrupt");
    gate.open();
    expect(await generating).toEqual(part);
    expect(asked).toEqual([[1], [1, 7, 8]]);
    await expect(gate.engine.generate(request)).rejects.toBe(tooLong);
  });
});
