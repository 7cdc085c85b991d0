import { setTimeout as sleep } from "node:timers/promises";
import type { Engine, GenerateRequest, Generation } from "../src/engine/engine.ts";

/**
 * Creates an engine that returns the session's next scripted turn after a short time. A measurement
 * around it contains only Turnwright's own cost.
 */
export function instantEngine(
  turnOf: (request: GenerateRequest) => readonly number[],
  { latencyMs }: { readonly latencyMs: number },
): Engine {
  return {
    kind: "instant",
    async generate(request): Promise<Generation> {
      await sleep(latencyMs);
      const outputIds = turnOf(request);
      return {
        outputIds,
        logprobs: outputIds.map(() => -0.5),
        finish: { type: "stop" },
        pieces: [
          {
            requestId: request.requestId,
            tokenCount: outputIds.length,
            policyVersion: "1",
            finish: "stop",
          },
        ],
        discarded: [],
      };
    },
    describe: async () => ({ kind: "instant", logprobConvention: "tempered" }),
    close: async () => {},
  };
}
