import { expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import { preparedEngine, says } from "../episode/lamp-episode.fixture.ts";
import { RolloutError } from "../errors.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { PolicyControl } from "./policy-control.ts";
import { PolicyWeights } from "./policy-weights.ts";

test("a disk error while lost weights are reloaded is reported, without an unhandled rejection", async () => {
  const inner = preparedEngine([says("hi")]);
  // A server that was started again names another version.
  const engine: Engine = {
    ...inner,
    async generate(...call) {
      const generation = await inner.generate(...call);
      return {
        ...generation,
        pieces: generation.pieces.map((piece) => ({ ...piece, policyVersion: "default" })),
      };
    },
  };
  const policy = new PolicyControl(engine);
  let loads = 0;
  const full = new Error("ENOSPC: no space left on device");
  const reported = withResolvers<unknown>();
  const weights = new PolicyWeights({
    policy,
    engineKind: engine.kind,
    control: {
      namesVersions: true,
      load: () => {
        loads += 1;
        if (loads === 1) return Promise.resolve();
        return Promise.reject(new RolloutError("engine/mixed-weights", "servers differ"));
      },
      have: () => Promise.resolve(false),
    },
    append: async (entry) => {
      if (entry.type === "paused") await Promise.reject(full);
    },
    orFail: async (work) => {
      try {
        await work;
      } catch (error) {
        reported.resolve(error);
        throw error;
      }
    },
  });
  await weights.announce({ version: 3, weights: "/step-3" }, () => false);
  const request = {
    promptIds: [1],
    sampling: {},
    maxNewTokens: 90,
    stopTokenIds: [2],
    requestId: "r",
    sessionId: "s",
  };
  await expect(policy.engineAt()!.generate(request)).rejects.toThrow("started again");
  expect(await reported.promise).toBe(full);
});
