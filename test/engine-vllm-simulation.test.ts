import fc from "fast-check";
import { expect, test } from "vitest";
import { createVllmEngine } from "../src/engine/vllm/vllm-engine.ts";
import type { ServerFault } from "../src/testing/index.ts";
import { manualClock, seededPolicy, startVllmTestServer } from "../src/testing/index.ts";
import { toRequest } from "./engine-request.ts";

const SEED = 20_261_121;

/** Faults that a turn survives, however they are strung together. */
const survivable: fc.Arbitrary<ServerFault | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.record({ kind: fc.constant("abort-after" as const), tokens: fc.nat(12) }),
  fc.constant({ kind: "abort-in-queue" as const }),
  fc.record({
    kind: fc.constant("reset" as const),
    when: fc.constantFrom("at-once" as const, "after-sampling" as const, "within-reply" as const),
  }),
  fc.record({
    kind: fc.constant("status" as const),
    status: fc.constantFrom(408, 429, 500, 502, 503, 504),
  }),
  fc.record({
    kind: fc.constant("abort-after" as const),
    tokens: fc.nat(12),
    status: fc.constant(500),
  }),
);

test.each(["generate", "completions"] as const)(
  `%s: a turn comes out the same whatever befalls its requests (seed ${SEED})`,
  async (api) => {
    const faults: (ServerFault | undefined)[] = [];
    await using server = await startVllmTestServer({
      policy: seededPolicy({ seed: SEED, meanLength: 20 }),
      isDevelopment: true,
      faults: () => faults.shift(),
    });
    const calm = createVllmEngine({ url: server.url, api });
    const clock = manualClock({ skipUpToMs: 60_000 });
    const { now, sleep } = clock;
    const tried = createVllmEngine({
      url: server.url,
      api,
      now,
      sleep,
      timeouts: { controlMs: 70_000 },
      retry: { maxAttempts: 50 },
    });
    let number = 0;
    const property = fc.asyncProperty(
      fc.array(fc.nat(999), { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 40 }),
      fc.array(survivable, { maxLength: 8 }),
      async (promptIds, maxNewTokens, befalling) => {
        const request = toRequest({ promptIds, maxNewTokens, requestId: `${number++}-` });
        const expected = await calm.generate(request);
        faults.splice(0, faults.length, ...befalling);
        const generation = await tried.generate(request);
        faults.length = 0;
        expect(generation.outputIds).toEqual(expected.outputIds);
        expect(generation.logprobs).toEqual(expected.logprobs);
        expect(generation.finish).toEqual(expected.finish);
        const counts = generation.pieces.map(({ tokenCount }) => tokenCount);
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(generation.outputIds.length);
        expect(counts.every((count) => count > 0)).toBe(true);
        expect(generation.pieces.at(-1)?.finish).toBe(generation.finish.type);
        expect(generation.pieces.every(({ policyVersion }) => policyVersion === "default")).toBe(
          true,
        );
      },
    );
    await fc.assert(property, { seed: SEED, numRuns: 100 });
    expect(server.problems).toEqual([]);
    await calm.close();
    await tried.close();
  },
);
