import { describe, expect, test } from "vitest";
import type { ColumnSpecs } from "../../src/columns/column-specs.ts";
import type { Engine, GenerateRequest, Generation } from "../../src/engine/engine.ts";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { requireColumns } from "../../src/engine/require-columns.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import type { ServerFault } from "../../src/testing/index.ts";
import {
  createScriptedPolicy,
  startLlamaCppTestServer,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import type { TestColumns } from "../../src/testing/protocol-servers/shared/column-model.ts";

type Json = Record<string, unknown>;

const specs = {
  routedExperts: { layerCount: 3, perToken: 2, expertCount: 8 },
  keptTokens: { maxCount: 4 },
  topLogprobs: { count: 2 },
} satisfies ColumnSpecs;
const served: TestColumns = { ...specs, keptTokens: { maxCount: 64 } };
const turn = { outputIds: [10, 13, 2], logprobs: [-0.5, -0.25, -1] };
const request: GenerateRequest = {
  promptIds: [5, 6],
  sampling: { topK: 4 },
  maxNewTokens: 8,
  stopTokenIds: [2],
  columns: { specs, knownRows: 0 },
  requestId: "r",
  sessionId: "s",
};
const quick = { retry: { baseDelayMs: 1, maxDelayMs: 1 }, resume: { delayMs: 1, maxDelayMs: 1 } };
/** Bytes of a row: on the wire of SGLang, and of vLLM. */
const [wideRow, narrowRow] = [24, 6];

async function sample(
  server: { url: string; close(): Promise<void> },
  engine: Engine,
  isStreamed: boolean,
): Promise<Generation> {
  try {
    return await engine.generate(request, isStreamed ? { onTokens: () => undefined } : {});
  } finally {
    await engine.close();
    await server.close();
  }
}

/** Changes each reply that has routes, or each reply. */
function alters(change: (place: Json) => void, ofReply: (reply: Json) => Json): ServerFault[] {
  const alter = (reply: Json): Json => {
    const place = ofReply(reply);
    if (place["routed_experts"] !== undefined && place["routed_experts"] !== null) change(place);
    return reply;
  };
  return Array.from({ length: 3 }, () => ({ kind: "alter", alter }));
}

/** Changes the decoded bytes of the routes. */
function recode(change: (bytes: Buffer) => Buffer): (place: Json) => void {
  return (place) => {
    const bytes = Buffer.from(place["routed_experts"] as string, "base64");
    place["routed_experts"] = change(bytes).toString("base64");
  };
}

describe.each([false, true])("SGLang (streamed: %s)", (isStreamed) => {
  const cases: readonly [string, (meta: Json) => void, string][] = [
    ["a missing column", (meta) => delete meta["routed_experts"], "no column routedExperts"],
    ["no text", (meta) => (meta["routed_experts"] = { data: "" }), "meta_info.routed_experts is"],
    ["one row too few", recode((bytes) => bytes.subarray(wideRow)), "has 3 rows"],
    [
      "one row too many",
      recode((bytes) => Buffer.concat([bytes, bytes.subarray(-wideRow)])),
      "has 5 rows",
    ],
    ["a part of a row", recode((bytes) => bytes.subarray(4)), "has 23 bytes"],
    ["a part of a number", recode((bytes) => bytes.subarray(0, -1)), "ends within a number"],
    ["an id too large", recode((bytes) => bytes.fill(9, 4, 5)), "has the experts"],
    ["a wide id", recode((bytes) => bytes.fill(1, 5, 6)), "meta_info.routed_experts has the id"],
    ["zeros", recode((bytes) => bytes.fill(0)), "is zero in all 3 layers"],
    [
      "zeros in a row",
      recode((bytes) => bytes.fill(0, wideRow, wideRow + 8)),
      "the experts 0, 0 in layer 0",
    ],
    [
      "base64 that was cut off",
      (meta) => (meta["routed_experts"] = (meta["routed_experts"] as string).slice(0, -2)),
      "is not base64",
    ],
    ["no kept tokens", (meta) => delete meta["output_token_sampling_mask"], "no column keptTokens"],
    [
      "a set without the drawn token",
      (meta) => ((meta["output_token_sampling_mask"] as number[][])[1] = [77]),
      "lacks the sampled id 13",
    ],
    ["no tops", (meta) => delete meta["output_top_logprobs"], "no column topLogprobs"],
    [
      "a set too few",
      (meta) => (meta["output_token_sampling_mask"] as number[][]).pop(),
      "output_token_sampling_mask has 2 entries",
    ],
  ];

  test.each(isStreamed ? cases.filter(([name]) => !name.startsWith("no ")) : cases)(
    "%s is refused",
    async (_, change, problem) => {
      const faults = alters(change, (reply) => reply["meta_info"] as Json);
      const options = { policy: createScriptedPolicy({ s: [turn, turn, turn] }), columns: served };
      const server = await startSglangTestServer({ ...options, faults });
      const engine = createSglangEngine({ url: server.url, mode: "direct", ...quick });
      await expect(sample(server, engine, isStreamed)).rejects.toMatchObject({
        code: "engine/bad-reply",
        message: expect.stringContaining(problem) as string,
      });
    },
  );

  test("a generated text with the member's name is read as it is", async () => {
    const text = String.raw`{"routed_experts":"AAAA\"routed_experts\":\"" `;
    const faults: ServerFault[] = [{ kind: "alter", alter: (reply) => ({ ...reply, text }) }];
    const options = { policy: createScriptedPolicy({ s: [turn] }), columns: served, faults };
    const server = await startSglangTestServer(options);
    const engine = createSglangEngine({ url: server.url, mode: "direct", ...quick });
    const { columns } = await sample(server, engine, isStreamed);
    expect(columns!.routedExperts![0]!.rows).toBe(4);
  });
});

describe.each([false, true])("vLLM (streamed: %s)", (isStreamed) => {
  const cases: readonly [string, (choice: Json) => void, string][] = [
    ["a missing column", (choice) => (choice["routed_experts"] = null), "no column routedExperts"],
    ["another form", (choice) => (choice["routed_experts"] = { data: "" }), "routed_experts is"],
    ["no .npy file", recode((bytes) => bytes.subarray(128)), "is not a .npy file"],
    ["a row too few", recode((bytes) => bytes.subarray(0, -narrowRow)), "bytes for 4 rows"],
    [
      "another type",
      recode((bytes) => Buffer.from(bytes.toString("latin1").replace("|u1", "|i1"), "latin1")),
      'has the type "|i1"',
    ],
    ["an id too large", recode((bytes) => bytes.fill(9, 128, 129)), "has the experts 9"],
    [
      "an expert twice",
      recode((bytes) => bytes.fill(bytes.subarray(128, 129), 129, 130)),
      "expected 2 different experts",
    ],
    [
      "a set without the drawn token",
      (choice) => ((choice["sampling_mask"] as number[][])[0] = [77]),
      "lacks the sampled id",
    ],
  ];

  test.each(cases)("%s is refused", async (_, change, problem) => {
    const faults = alters(change, (reply) => (reply["choices"] as Json[])[0] ?? {});
    const options = { policy: createScriptedPolicy({ s: [turn, turn, turn] }), columns: served };
    const server = await startVllmTestServer({ ...options, faults });
    const engine = createVllmEngine({ url: server.url, ...quick });
    await expect(sample(server, engine, isStreamed)).rejects.toMatchObject({
      code: "engine/bad-reply",
      message: expect.stringContaining(problem) as string,
    });
  });
});

test("a large column is not refused as a long reply", async () => {
  const options = { policy: createScriptedPolicy({ s: [turn] }), columns: served };
  const server = await startSglangTestServer(options);
  const { url } = server;
  const engine = createSglangEngine({ url, mode: "direct", maxReplyBytes: 1_500, ...quick });
  const promptIds = Array.from({ length: 500 }, (_, index) => index);
  const columns = { specs: { routedExperts: specs.routedExperts }, knownRows: 0 };
  const generation = await engine.generate({ ...request, promptIds, columns });
  await engine.close();
  await server.close();
  expect(generation.columns!.routedExperts![0]!.size).toBe(502 * narrowRow);
});

test.each([
  ["no bound", {}, "kept tokens with a topK of -1"],
  ["a larger bound", { topK: 5 }, "kept tokens with a topK of 5"],
])("kept tokens with %s are refused before a request", async (_, sampling, problem) => {
  await using sglang = await startSglangTestServer({ columns: served });
  await using vllm = await startVllmTestServer({ columns: served });
  for (const engine of [
    createSglangEngine({ url: sglang.url, mode: "direct" }),
    createVllmEngine({ url: vllm.url }),
  ]) {
    await expect(engine.generate({ ...request, sampling })).rejects.toMatchObject({
      code: "engine/bad-request",
      message: expect.stringContaining(problem) as string,
    });
    await engine.close();
  }
  expect([...sglang.requests, ...vllm.requests]).toEqual([]);
});

test("servers without columns refuse them by name", async () => {
  await using llamaCpp = await startLlamaCppTestServer();
  await using vllm = await startVllmTestServer({ apis: ["completions"] });
  for (const engine of [
    createLlamaCppEngine({ url: llamaCpp.url }),
    createVllmEngine({ url: vllm.url }),
  ]) {
    await expect(engine.generate(request)).rejects.toMatchObject({ code: "engine/bad-request" });
    await engine.close();
  }
});

describe("requireColumns()", () => {
  test("accepts servers that return each column", async () => {
    await using sglang = await startSglangTestServer({ columns: served });
    await using vllm = await startVllmTestServer({ columns: served });
    const engines = [
      createSglangEngine({ url: sglang.url, ...quick }),
      createVllmEngine({ url: vllm.url, ...quick }),
    ];
    for (const engine of engines) {
      await expect(requireColumns(engine, specs, { promptIds: [5] })).resolves.toBeUndefined();
      await expect(engine.probe({ columns: specs })).resolves.toMatchObject({ kind: engine.kind });
    }
    await expect(engines[0]!.describe()).resolves.toMatchObject({
      columns: ["routedExperts", "keptTokens", "topLogprobs"],
    });
    await expect(engines[1]!.describe()).resolves.toMatchObject({
      logprobConvention: "processed",
    });
    for (const engine of engines) await engine.close();
  });

  test.each([
    ["routedExperts", "sglang", "--enable-return-routed-experts"],
    ["indexerTopK", "sglang", "--enable-return-indexer-topk"],
    ["routedExperts", "vllm", "--enable-return-routed-experts"],
    ["keptTokens", "vllm", "--return-sampling-mask"],
    ["indexerTopK", "vllm", "vLLM does not return it"],
    ["topLogprobs", "llama-cpp", "such as SGLang or vLLM"],
  ] as const)("names the column %s, the server %s and its flag", async (name, kind, flag) => {
    const starts = {
      sglang: startSglangTestServer,
      vllm: startVllmTestServer,
      "llama-cpp": startLlamaCppTestServer,
    };
    const connects = {
      sglang: createSglangEngine,
      vllm: createVllmEngine,
      "llama-cpp": createLlamaCppEngine,
    };
    await using server = await starts[kind]();
    const engine = connects[kind]({ url: server.url, ...quick });
    const all: ColumnSpecs = { ...specs, indexerTopK: { layerCount: 1, perToken: 2 } };
    const error: unknown = await requireColumns(engine, { [name]: all[name] }).catch(
      (thrown: unknown) => thrown,
    );
    await engine.close();
    expect(error).toMatchObject({ name: "UsageError" });
    expect(String(error)).toContain(`Cannot get the column ${name} from ${kind} at ${server.url}`);
    expect(String(error)).toContain(flag);
  });

  test("refuses another shape than the model's", async () => {
    await using server = await startSglangTestServer({ columns: served });
    const engine = createSglangEngine({ url: server.url, ...quick });
    const other = { routedExperts: { ...specs.routedExperts, layerCount: 4 } };
    await expect(requireColumns(engine, other, { promptIds: [5, 6] })).rejects.toThrow(
      /^Cannot get the column routedExperts from sglang.*, and a model with 4 layers and 2 of 8 experts a token$/s,
    );
    await engine.close();
  });
});
