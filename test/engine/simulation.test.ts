import fc from "fast-check";
import { expect, test } from "vitest";
import type { Engine, Generation } from "../../src/engine/engine.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import type { ServerFault } from "../../src/testing/index.ts";
import {
  createManualClock,
  createSeededPolicy,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import { toRequest } from "./request.ts";

const SEED = 20_261_121;
const policy = createSeededPolicy({ seed: SEED, meanLength: 20 });

/** Settings of an engine with an instant and endless back-off. */
function patience() {
  const { now, sleep } = createManualClock({ skipUpToMs: 60_000 });
  return { now, sleep, timeouts: { controlMs: 70_000 }, retry: { maxAttempts: 50 } };
}

/** A kind of server, and an engine that is troubled by faults beside one that is not. */
interface Simulation {
  readonly name: string;
  readonly start: (faults: () => ServerFault | undefined) => Promise<{
    readonly server: { readonly problems: readonly unknown[]; close(): Promise<void> };
    readonly calm: Engine;
    readonly tried: Engine;
  }>;
  /** Statuses that an aborted request may fail with. */
  readonly abortStatuses: readonly number[];
  readonly numRuns: number;
  /** Further properties of a generation. */
  readonly check: (generation: Generation) => void;
}

function vllm(api: "generate" | "completions"): Simulation {
  return {
    name: `vllm, ${api},`,
    async start(faults) {
      const server = await startVllmTestServer({ policy, isDevelopment: true, faults });
      const { url } = server;
      const calm = createVllmEngine({ url, api });
      return { server, calm, tried: createVllmEngine({ url, api, ...patience() }) };
    },
    abortStatuses: [500],
    numRuns: 100,
    check({ pieces }) {
      expect(pieces.every(({ policyVersion }) => policyVersion === "default")).toBe(true);
    },
  };
}

const SIMULATIONS: readonly Simulation[] = [
  {
    name: "sglang",
    async start(faults) {
      const server = await startSglangTestServer({ policy, faults });
      const direct = { url: server.url, mode: "direct" } as const;
      const calm = createSglangEngine(direct);
      return { server, calm, tried: createSglangEngine({ ...direct, ...patience() }) };
    },
    abortStatuses: [500, 503],
    numRuns: 150,
    check({ pieces, discarded }) {
      const ids = [...pieces, ...discarded].map(({ requestId }) => requestId);
      expect(new Set(ids).size).toBe(ids.length);
    },
  },
  vllm("generate"),
  vllm("completions"),
];

/** Faults that a turn survives, however they are strung together. */
function survivable(abortStatuses: readonly number[]): fc.Arbitrary<ServerFault | undefined> {
  return fc.oneof(
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
      status: fc.constantFrom(...abortStatuses),
    }),
  );
}

test.each(SIMULATIONS)(
  `$name: a turn's result is the same under all faults of its requests (seed ${SEED})`,
  async ({ start, abortStatuses, numRuns, check }) => {
    const faults: (ServerFault | undefined)[] = [];
    const { server, calm, tried } = await start(() => faults.shift());
    let number = 0;
    const property = fc.asyncProperty(
      fc.array(fc.nat(999), { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 40 }),
      fc.array(survivable(abortStatuses), { maxLength: 8 }),
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
        check(generation);
      },
    );
    await fc.assert(property, { seed: SEED, numRuns });
    expect(server.problems).toEqual([]);
    await calm.close();
    await tried.close();
    await server.close();
  },
);
