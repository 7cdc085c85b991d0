import type { Engine } from "../../src/engine/engine.ts";
import type { HttpEngineOptions } from "../../src/engine/http/http-engine-options.ts";
import type { LlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import type { LlamaCppEngineOptions } from "../../src/engine/llama-cpp/llama-cpp-options.ts";
import type { SglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import type { SglangEngineOptions } from "../../src/engine/sglang/sglang-options.ts";
import type { VllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import type { VllmEngineOptions } from "../../src/engine/vllm/vllm-options.ts";
import type {
  LlamaCppTestServer,
  LlamaCppTestServerOptions,
  ScriptedTurn,
  ServerFault,
  SglangTestServer,
  VllmTestServer,
  VllmTestServerOptions,
} from "../../src/testing/index.ts";
import {
  createScriptedPolicy,
  startLlamaCppTestServer,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import type { Tested } from "./under-test.ts";
import { SAMPLED, underTest } from "./under-test.ts";

/** The faults of the requests to a server, in order. */
export type Faults = readonly (ServerFault | undefined)[];

/** Settings of an engine that takes no reply but the first. */
export const ONCE = { retry: { maxAttempts: 1 } } as const;

/** The server's samples, its differences from the usual one, and settings of the engine. */
type Changes<ServerOptions, EngineOptions> = {
  readonly turns?: readonly ScriptedTurn[];
  readonly server?: ServerOptions;
} & Partial<EngineOptions>;

const timeouts = { controlMs: 70_000 };

/** SGLang with faults. */
export async function startFaultySglang(
  faults: Faults,
  { turns = [SAMPLED], ...options }: Changes<never, SglangEngineOptions> = {},
): Promise<Tested<SglangTestServer, SglangEngine>> {
  const server = await startSglangTestServer({ policy: createScriptedPolicy(turns), faults });
  return underTest(server, (connection) =>
    createSglangEngine({ ...connection, mode: "direct", timeouts, ...options }),
  );
}

/** One of vLLM's APIs. */
export type VllmApi = "generate" | "completions";

/** vLLM with faults and one API. */
export async function startFaultyVllm(
  api: VllmApi,
  faults: Faults,
  {
    turns = [SAMPLED],
    server: serverOptions = {},
    ...options
  }: Changes<VllmTestServerOptions, VllmEngineOptions> = {},
): Promise<Tested<VllmTestServer, VllmEngine>> {
  const policy = createScriptedPolicy(turns);
  const server = await startVllmTestServer({ policy, faults, apis: [api], ...serverOptions });
  return underTest(server, (connection) =>
    createVllmEngine({ ...connection, api, timeouts, ...options }),
  );
}

/** llama.cpp's server with faults. */
export async function startFaultyLlamaCpp(
  faults: Faults,
  {
    turns = [SAMPLED],
    server: serverOptions = {},
    ...options
  }: Changes<LlamaCppTestServerOptions, LlamaCppEngineOptions> = {},
): Promise<Tested<LlamaCppTestServer, LlamaCppEngine>> {
  const policy = createScriptedPolicy(turns);
  const server = await startLlamaCppTestServer({ policy, faults, ...serverOptions });
  return underTest(server, (connection) =>
    createLlamaCppEngine({ ...connection, timeouts, ...options }),
  );
}

/** An engine over HTTP, with its differences in the faults that all servers have. */
export interface FaultyEngine {
  readonly name: string;
  readonly start: (
    faults: Faults,
    changes?: Changes<never, Pick<HttpEngineOptions, "retry" | "maxReplyBytes">>,
  ) => Promise<Tested<Pick<SglangTestServer, "url" | "stats" | "requests">, Engine>>;
  /** The policy's version that a fresh server reports. */
  readonly policyVersion: string;
  /** The generation's report on its prompt of three ids. */
  readonly promptCounts: { readonly promptTokenCount: number; readonly cachedTokenCount?: number };
  /** The number of aborts that the server receives for a request that may have been sampled. */
  readonly abortCount: number;
}

/** An engine that resumes turns which the server interrupts. */
export interface InterruptedEngine extends FaultyEngine {
  readonly start: (
    faults: Faults,
    changes?: Changes<never, Pick<HttpEngineOptions, "resume">>,
  ) => ReturnType<FaultyEngine["start"]>;
  /** The server's reason for an interruption, as failures name it if the fault itself has none. */
  readonly interruption: string;
}

/** The engines whose turns can be interrupted. */
export const INTERRUPTED_ENGINES: readonly InterruptedEngine[] = [
  {
    name: "sglang",
    start: startFaultySglang,
    policyVersion: "default",
    promptCounts: { promptTokenCount: 3, cachedTokenCount: 0 },
    abortCount: 1,
    interruption: "Aborted",
  },
  ...(
    [
      { api: "generate", release: "0.32", policyVersion: "default", abortCount: 1 },
      // No server listens on it: it is asked once at each of two paths, and then not again.
      { api: "generate", release: "0.24", policyVersion: "", abortCount: 2 },
      { api: "completions", release: "0.32", policyVersion: "", abortCount: 2 },
    ] as const
  ).map(({ api, release, policyVersion, abortCount }) => ({
    name: `vllm ${release}, ${api}`,
    start: (faults: Faults, changes?: Parameters<InterruptedEngine["start"]>[1]) =>
      startFaultyVllm(api, faults, { ...changes, server: { release } }),
    policyVersion,
    promptCounts: { promptTokenCount: 3 },
    abortCount,
    interruption: "the server aborted it",
  })),
];

/** All engines over HTTP. */
export const FAULTY_ENGINES: readonly FaultyEngine[] = [
  ...INTERRUPTED_ENGINES,
  {
    name: "llama.cpp",
    start: startFaultyLlamaCpp,
    policyVersion: "",
    promptCounts: { promptTokenCount: 3, cachedTokenCount: 0 },
    abortCount: 0,
  },
];
