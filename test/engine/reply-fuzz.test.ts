import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkGeneration } from "../../src/engine/check-sampled.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { isSampledLogprob } from "../../src/values/logprob-range.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import { RolloutError } from "../../src/errors.ts";
import type { ServerFaults } from "../../src/testing/index.ts";
import {
  createManualClock,
  createSeededPolicy,
  startLlamaCppTestServer,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import { toRequest } from "./request.ts";

const SEED = 20_261_122;
const RUNS = 150;
const VOCABULARY_SIZE = 1_000;
const policy = createSeededPolicy({ seed: SEED, meanLength: 6, vocabularySize: VOCABULARY_SIZE });

interface Served {
  readonly url: string;
  close(): Promise<void>;
}

const { now, sleep } = createManualClock({ skipUpToMs: 60_000 });
const settings = { now, sleep, timeouts: { controlMs: 70_000 }, retry: { maxAttempts: 1 } };

const ENGINES: readonly {
  readonly name: string;
  readonly serve: (faults: ServerFaults) => Promise<Served>;
  readonly connect: (url: string) => Engine;
}[] = [
  {
    name: "sglang",
    serve: (faults) => startSglangTestServer({ policy, faults }),
    connect: (url) => createSglangEngine({ url, mode: "direct", ...settings }),
  },
  ...(["generate", "completions"] as const).map((api) => ({
    name: `vllm, ${api}`,
    serve: (faults: ServerFaults) => startVllmTestServer({ policy, faults, apis: [api] }),
    connect: (url: string) => createVllmEngine({ url, api, ...settings }),
  })),
  {
    name: "llama.cpp",
    serve: (faults) => startLlamaCppTestServer({ policy, faults }),
    connect: (url) => createLlamaCppEngine({ url, ...settings }),
  },
];

/** The value that replaces a part of a reply; `undefined` removes it. */
const strange = fc.oneof(
  fc.constantFrom(undefined, null, true, "", "7", [], {}, 0, -1, 0.5, 2, 2 ** 31, 2 ** 53, 1e300),
  fc.constantFrom(VOCABULARY_SIZE, -1e308, -9_999, -10_000.5, 1e-7, [null], [[]], "stop", "abort"),
  fc.integer(),
  fc.double(),
  fc.jsonValue({ maxDepth: 2 }),
);

/**
 * Changes of a reply: the indexes of the changed parts, modulo their number, and the new values.
 */
const changes = fc.array(fc.record({ part: fc.nat(), value: strange }), {
  minLength: 1,
  maxLength: 3,
});

type Changes = readonly { readonly part: number; readonly value: unknown }[];

function change(reply: unknown, list: Changes): unknown {
  const root: Record<string, unknown> = { reply: structuredClone(reply) };
  for (const { part, value } of list) {
    const parts: (() => void)[] = [];
    const collect = (parent: Record<string, unknown>): void => {
      for (const key of Object.keys(parent)) {
        parts.push(() => {
          parent[key] = value;
        });
        const child = parent[key];
        if (child !== null && typeof child === "object") collect(child as Record<string, unknown>);
      }
    };
    collect(root);
    parts[part % parts.length]?.();
  }
  return root["reply"] ?? null;
}

/** True if a call fails as an outage of the engine; rethrows any other error. */
async function refused(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return false;
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    expect(error.party).toBe("engine");
    return true;
  }
}

describe.each(ENGINES)("$name: a changed reply", ({ serve, connect }) => {
  async function withChanges(run: (engine: Engine, use: (list: Changes) => void) => Promise<void>) {
    let current: Changes = [];
    const server = await serve(() => ({
      kind: "alter",
      alter: (reply) => change(reply, current),
    }));
    const engine = connect(server.url);
    try {
      await run(engine, (list) => {
        current = list;
      });
    } finally {
      await engine.close();
      await server.close();
    }
  }

  test("is a right generation or an outage", async () => {
    await withChanges(async (engine, use) => {
      let refusedCount = 0;
      await fc.assert(
        fc.asyncProperty(changes, fc.nat(), async (list, id) => {
          use(list);
          const changed = { requestId: `r${id};`, sessionId: `s${id}`, maxNewTokens: 12 };
          const request = toRequest({ ...changed, vocabularySize: VOCABULARY_SIZE });
          const call = engine.generate(request);
          if (await refused(call)) refusedCount++;
          else expect(checkGeneration(await call, request).outputIds.length).toBeGreaterThan(0);
        }),
        { seed: SEED, numRuns: RUNS },
      );
      expect(refusedCount).toBeGreaterThan(RUNS / 10);
    });
  });

  test("is right scores or an outage", async () => {
    await withChanges(async (engine, use) => {
      if (engine.score === undefined) return;
      const score = engine.score.bind(engine);
      await fc.assert(
        fc.asyncProperty(changes, async (list) => {
          use(list);
          const call = score({ ids: [5, 6, 7, 8], sampling: {}, vocabularySize: VOCABULARY_SIZE });
          if (await refused(call)) return;
          const scores = await call;
          expect(scores).toHaveLength(3);
          expect(scores.every((logprob) => isSampledLogprob(logprob))).toBe(true);
        }),
        { seed: SEED, numRuns: RUNS },
      );
    });
  });
});
