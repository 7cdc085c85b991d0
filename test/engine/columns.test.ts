import { describe, expect, test } from "vitest";
import { decodeRagged } from "../../src/columns/ragged-rows.ts";
import type { ColumnPart } from "../../src/columns/column-part.ts";
import { hashColumnBytes } from "../../src/columns/column-part.ts";
import type { ColumnSpecs } from "../../src/columns/column-specs.ts";
import { checkGeneration } from "../../src/engine/check-sampled.ts";
import type { Engine, GenerateRequest, Generation } from "../../src/engine/engine.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import type {
  PolicyToken,
  ServerFault,
  ServerPolicy,
  SglangTestServer,
  VllmTestServer,
} from "../../src/testing/index.ts";
import {
  createScriptedPolicy,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import {
  createColumnModel,
  type TestColumns,
} from "../../src/testing/protocol-servers/shared/column-model.ts";
import { stuckPolicy } from "./waiting-policies.ts";

const specs = {
  routedExperts: { layerCount: 4, perToken: 2, expertCount: 8 },
  keptTokens: { maxCount: 20 },
  topLogprobs: { count: 3 },
} satisfies ColumnSpecs;

const served: TestColumns = {
  routedExperts: { ...specs.routedExperts, denseLayers: [0] },
  keptTokens: { maxCount: 64 },
};
const model = createColumnModel(served);

const outputIds = [10, 11, 12, 13, 14, 2];
const logprobs = outputIds.map((_, index) => -(index + 1) / 8);
const promptIds = [5, 6, 7, 8];

const request: GenerateRequest = {
  promptIds,
  sampling: { topK: 20 },
  maxNewTokens: 16,
  stopTokenIds: [2],
  vocabularySize: 1_000,
  columns: { specs, knownRows: 0 },
  requestId: "r",
  sessionId: "s",
};

/** The routes of tokens from `from` on, all computed by one version. */
function routesOf(ids: readonly number[], from: number, version: string): number[] {
  return ids.slice(from, -1).flatMap((id, index) => {
    const token = { id, position: from + index, version };
    return [0, 1, 2, 3].flatMap((layer) => [...model.experts(token, layer)]);
  });
}

function bytesOf(part: ColumnPart | undefined): number[] {
  return [...(part?.bytes ?? [])];
}

interface Served {
  readonly server: SglangTestServer | VllmTestServer;
  readonly engine: Engine;
}

type Serve = (options: {
  columns?: TestColumns;
  faults?: readonly ServerFault[];
  policy?: ServerPolicy;
}) => Promise<Served>;

const tokens: readonly PolicyToken[] = outputIds.map((id, index) => ({
  id,
  logprob: logprobs[index]!,
}));

/** Samples the tokens, and calls a function before each of them. */
function watchedPolicy(before: (index: number) => void): ServerPolicy {
  return {
    name: "watched",
    *begin() {
      for (const [index, token] of tokens.entries()) {
        before(index);
        yield token;
      }
    },
  };
}

const policyOf = () => createScriptedPolicy({ s: [{ outputIds, logprobs }] });
const quick = { retry: { baseDelayMs: 1, maxDelayMs: 1 }, resume: { delayMs: 1, maxDelayMs: 1 } };

const serves: Readonly<Record<string, Serve>> = {
  sglang: async ({ columns = served, ...rest }) => {
    const server = await startSglangTestServer({ policy: policyOf(), columns, ...rest });
    return { server, engine: createSglangEngine({ url: server.url, mode: "direct", ...quick }) };
  },
  "sglang, incremental": async ({ columns = served, ...rest }) => {
    const options = { policy: policyOf(), columns, incrementalStreaming: true };
    const server = await startSglangTestServer({ ...options, ...rest });
    return { server, engine: createSglangEngine({ url: server.url, mode: "direct", ...quick }) };
  },
  vllm: async ({ columns = served, ...rest }) => {
    const server = await startVllmTestServer({ policy: policyOf(), columns, ...rest });
    return { server, engine: createVllmEngine({ url: server.url, ...quick }) };
  },
};

const ways = [false, true];

describe.each(Object.entries(serves))("%s", (kind, serve) => {
  async function sample(
    changes: Partial<GenerateRequest>,
    {
      isStreamed = false,
      ...options
    }: Parameters<Serve>[0] & { readonly isStreamed?: boolean } = {},
  ): Promise<Generation> {
    const { server, engine } = await serve(options);
    try {
      const asked = { ...request, ...changes };
      const streaming = isStreamed ? { onTokens: () => undefined } : {};
      const generation = await engine.generate(asked, streaming);
      return checkGeneration(generation, asked);
    } finally {
      await engine.close();
      await server.close();
    }
  }

  test.each(ways)("returns each column (streamed: %s)", async (isStreamed) => {
    const { columns, ...generation } = await sample({}, { isStreamed });
    expect(generation.outputIds).toEqual(outputIds);
    const kept = outputIds.map((id, index) =>
      model.kept({ id, index, logprob: logprobs[index]! }, 20),
    );
    expect(generation.logprobs).toEqual(kept.map(({ logprob }) => logprob));
    const [routes] = columns!.routedExperts!;
    expect(bytesOf(routes)).toEqual(routesOf([...promptIds, ...outputIds], 0, "default"));
    expect(routes).toMatchObject({ from: 0, rows: 9, size: 72, policyVersion: "default" });
    expect(routes!.hash).toBe(hashColumnBytes(routes!.bytes!));
    const [sets] = columns!.keptTokens!;
    expect(sets).toMatchObject({ from: 4, rows: 6, policyVersion: "default" });
    const decoded = decodeRagged(sets!.bytes!, { rows: 6, hasLogprobs: false });
    const isVllm = kind === "vllm";
    const listed = kept.map(({ ids }) => (isVllm ? ids.toSorted((a, b) => a - b) : ids));
    expect([...decoded.counts]).toEqual(listed.map(({ length }) => length));
    expect([...decoded.ids]).toEqual(listed.flat());
    const [tops] = columns!.topLogprobs!;
    expect(tops).toMatchObject({ from: 4, rows: 6 });
    const { counts, ids } = decodeRagged(tops!.bytes!, { rows: 6, hasLogprobs: true });
    expect([...counts]).toEqual([3, 3, 3, 3, 3, 3]);
    if (!isVllm) {
      const expected = outputIds.flatMap((id, index) =>
        model.tops({ id, index, logprob: logprobs[index]! }, 3).map((top) => top.id),
      );
      expect([...ids]).toEqual(expected);
    }
  });

  test.each(ways)("returns only rows that are not known (streamed: %s)", async (isStreamed) => {
    const columns = { specs: { routedExperts: specs.routedExperts }, knownRows: 3 };
    const generation = await sample({ columns }, { isStreamed });
    const [routes] = generation.columns!.routedExperts!;
    expect(routes).toMatchObject({ from: 3, rows: 6 });
    expect(bytesOf(routes)).toEqual(routesOf([...promptIds, ...outputIds], 3, "default"));
  });

  test.each(ways)(
    "an interrupted turn has rows of each piece (streamed: %s)",
    async (isStreamed) => {
      const faults: ServerFault[] = [{ kind: "abort-after", tokens: 2 }];
      const generation = await sample({}, { isStreamed, faults });
      expect(generation.outputIds).toEqual(outputIds);
      const { routedExperts = [], keptTokens = [], topLogprobs = [] } = generation.columns!;
      const places = (parts: readonly ColumnPart[]) => parts.map(({ from, rows }) => [from, rows]);
      expect(places(routedExperts)).toEqual([
        [0, 5],
        [5, 4],
      ]);
      expect(places(keptTokens)).toEqual([
        [4, 2],
        [6, 4],
      ]);
      expect(places(topLogprobs)).toEqual(places(keptTokens));
      const all = routesOf([...promptIds, ...outputIds], 0, "default");
      expect(routedExperts.flatMap(bytesOf)).toEqual(all);
    },
  );

  test.each(ways)(
    "a request aborted in the queue is repeated (streamed: %s)",
    async (isStreamed) => {
      const faults: ServerFault[] = [{ kind: "abort-in-queue" }];
      const generation = await sample({}, { isStreamed, faults });
      expect(generation.outputIds).toEqual(outputIds);
      const { routedExperts = [] } = generation.columns!;
      expect(routedExperts.map(({ from, rows }) => [from, rows])).toEqual([[0, 9]]);
    },
  );

  test("a stream that breaks continues if the next request returns all rows", async () => {
    const faults: ServerFault[] = [{ kind: "reset", when: "within-reply", afterTokens: 2 }];
    const only = { specs: { routedExperts: specs.routedExperts }, knownRows: 0 };
    const generation = await sample({ columns: only }, { isStreamed: true, faults });
    expect(generation.pieces.map(({ tokenCount }) => tokenCount)).toEqual([2, 4]);
    const { routedExperts = [] } = generation.columns!;
    expect(routedExperts.map(({ from, rows }) => [from, rows])).toEqual([[0, 9]]);
  });

  test.each(["keptTokens", "topLogprobs"] as const)(
    "a stream that breaks with %s fails, so that the turn is requested again",
    async (name) => {
      const faults: ServerFault[] = [{ kind: "reset", when: "within-reply", afterTokens: 2 }];
      const only = { specs: { [name]: specs[name] }, knownRows: 0 };
      await expect(sample({ columns: only }, { isStreamed: true, faults })).rejects.toMatchObject({
        code: "engine/interrupted",
        retryable: true,
        message: expect.stringContaining(`their column ${name} did not arrive`) as string,
      });
    },
  );

  test("a stream that breaks after the last id fails", async () => {
    const faults: ServerFault[] = [{ kind: "reset", when: "within-reply", afterTokens: 6 }];
    const columns = { specs: { routedExperts: specs.routedExperts }, knownRows: 0 };
    await expect(
      sample({ columns, maxNewTokens: 7 }, { isStreamed: true, faults }),
    ).rejects.toMatchObject({ code: "engine/interrupted" });
  });

  test.each(ways)(
    "rows belong to the version of their weights (streamed: %s)",
    async (isStreamed) => {
      const { server, engine } = await serve({
        policy: watchedPolicy((index) => {
          if (index === 3) server.setWeightVersion("v2");
        }),
      });
      const streaming = isStreamed ? { onTokens: () => undefined } : {};
      const generation = await engine.generate(request, streaming);
      await engine.close();
      await server.close();
      expect(generation.pieces.map(({ policyVersion }) => policyVersion)).toEqual([
        "default",
        "v2",
      ]);
      const checked = checkGeneration(generation, request);
      const { routedExperts = [], keptTokens = [], topLogprobs = [] } = checked.columns!;
      const places = (parts: readonly ColumnPart[]) =>
        parts.map(({ from, rows, policyVersion }) => [from, rows, policyVersion]);
      expect(places(routedExperts)).toEqual([
        [0, 6, "default"],
        [6, 3, "v2"],
      ]);
      expect(places(keptTokens)).toEqual([
        [4, 3, "default"],
        [7, 3, "v2"],
      ]);
      expect(places(topLogprobs)).toEqual(places(keptTokens));
      const ids = [...promptIds, ...outputIds];
      expect(bytesOf(routedExperts[0])).toEqual(routesOf(ids.slice(0, 7), 0, "default"));
      expect(bytesOf(routedExperts[1])).toEqual(routesOf(ids, 6, "v2"));
      for (const part of [...routedExperts, ...keptTokens, ...topLogprobs]) {
        expect(part.hash).toBe(hashColumnBytes(part.bytes!));
        expect(part.size).toBe(part.bytes!.length);
      }
    },
  );

  test("a cut turn keeps its columns", async () => {
    const { server, engine } = await serve({ policy: stuckPolicy(...tokens.slice(0, 3)) });
    const controller = new AbortController();
    const options = {
      cutShort: controller.signal,
      onTokens: ({ tokenIds }: { tokenIds: readonly number[] }) => {
        if (tokenIds.includes(12)) controller.abort();
      },
    };
    const generation = checkGeneration(await engine.generate(request, options), request);
    await engine.close();
    await server.close();
    expect(generation.finish).toEqual({ type: "length" });
    expect(generation.outputIds).toEqual([10, 11, 12]);
    const [routes] = generation.columns!.routedExperts!;
    expect(bytesOf(routes)).toEqual(routesOf([...promptIds, 10, 11, 12], 0, "default"));
  });

  test("wide ids have two bytes", async () => {
    const shape = { layerCount: 2, perToken: 3, expertCount: 384 };
    const wide = { specs: { routedExperts: shape }, knownRows: 0 };
    const generation = await sample({ columns: wide }, { columns: { routedExperts: shape } });
    const [part] = generation.columns!.routedExperts!;
    expect(part!.size).toBe(9 * 12);
    const ids = new Uint16Array(part!.bytes!.slice().buffer);
    const expected = [...promptIds, ...outputIds]
      .slice(0, -1)
      .flatMap((id, position) =>
        [0, 1].flatMap((layer) =>
          createColumnModel({ routedExperts: shape }).experts(
            { id, position, version: "default" },
            layer,
          ),
        ),
      );
    expect([...ids]).toEqual(expected);
  });

  test.each(["routedExperts", "keptTokens"] as const)(
    "a server that was not started with %s is refused",
    async (name) => {
      const only = { specs: { [name]: specs[name] }, knownRows: 0 };
      await expect(
        sample({ columns: only }, { columns: { keptTokens: undefined as never } }),
      ).rejects.toMatchObject({ code: "engine/bad-reply" });
    },
  );
});
