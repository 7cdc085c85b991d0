import type { CompletionContext } from "./completion-route.ts";
import { serveCompletion } from "./completion-route.ts";
import { JSON_UTF8, sendError } from "./error-replies.ts";
import type { LlamaCppRelease } from "./releases.ts";
import { LLAMA_CPP_RELEASES } from "./releases.ts";
import type { LlamaCppSequenceRequest } from "./request-decoding.ts";
import { findRelease } from "../shared/find-release.ts";
import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson } from "../shared/http-exchange.ts";
import type { TestServer, TestServerOptions } from "../shared/server-core.ts";
import { createServerCore, startServing } from "../shared/server-core.ts";

/** Settings of `startLlamaCppTestServer()`. `contextLength` is the length of one slot. */
export interface LlamaCppTestServerOptions extends Omit<TestServerOptions, "maxRunning"> {
  /** The release to imitate. Default `2026-10`. */
  readonly release?: LlamaCppRelease;
  /** The model's path in replies. Default `test-model.gguf`. */
  readonly modelPath?: string;
  /** The number of slots: sequences that are sampled at a time. Further ones wait. Default 4. */
  readonly slotCount?: number;
  /** The number of ids. All ids are below it. Default 200 000. */
  readonly vocabularySize?: number;
  /** The ids that end a turn, as the model defines them. No other ids end a turn. Default `[2]`. */
  readonly endTokenIds?: readonly number[];
  /**
   * Ids with a text that ends inside a character. The server reports no probability for them.
   * Default none.
   */
  readonly partialIds?: readonly number[];
  /** Ids that only appear in lists of more than 1 024 likely tokens. Default none. */
  readonly unlikelyIds?: readonly number[];
  /**
   * True if a draft model proposes tokens. Their probabilities are not reported then. Default
   * false.
   */
  readonly speculates?: boolean;
  /**
   * The treatment of a request to leave the text unparsed: applied, refused, or ignored. Default:
   * by the release.
   */
  readonly textGrammar?: "known" | "refused" | "unknown";
}

/** Controls of a running llama.cpp test server. */
export interface LlamaCppTestControls {
  /** Starts or stops answering like a server that is loading its model. */
  setLoading(isLoading: boolean): void;
}

/** A running llama.cpp test server. */
export interface LlamaCppTestServer
  extends TestServer<LlamaCppTestControls>, LlamaCppTestControls {}

/**
 * Starts a server with the protocol of llama.cpp's server, without a model. A policy decides the
 * tokens, and the server reproduces the form of llama.cpp's replies.
 */
export async function startLlamaCppTestServer(
  options: LlamaCppTestServerOptions = {},
): Promise<LlamaCppTestServer> {
  const state = createServerState(options);
  return await startServing<LlamaCppSequenceRequest, LlamaCppTestControls>(state, {
    port: options.port,
    route: (exchange) => route(exchange, state),
    controls: {
      setLoading: (isLoading) => {
        state.isLoading = isLoading;
      },
    },
  });
}

/** The state of a running server. */
interface ServerState extends CompletionContext {
  isLoading: boolean;
}

/**
 * Routes a request.
 * **Source:** ggml-org/llama.cpp tools/server/server-http.cpp (key, loading, 404) and
 * tools/server/server.cpp (paths).
 */
async function route(exchange: HttpExchange, state: ServerState): Promise<void> {
  const { path, method, request } = exchange;
  const { apiKey, counts } = state;
  const isOpen = path === "/health" || path === "/v1/health" || path === "/test/stats";
  const key = request.headers.authorization ?? request.headers["x-api-key"];
  if (apiKey !== undefined && !isOpen && key !== apiKey && key !== `Bearer ${apiKey}`) {
    sendError(exchange, { type: "authentication_error", message: "Invalid API Key" });
    return;
  }
  if (state.isLoading) {
    sendError(exchange, { type: "unavailable_error", message: "Loading model" });
    return;
  }
  if (method === "POST" && (path === "/completion" || path === "/completions")) {
    counts.generate += 1;
    await serveCompletion(exchange, state);
    return;
  }
  const page = method === "GET" ? PAGES[path] : undefined;
  if (page === undefined) {
    sendError(exchange, { type: "not_found_error", message: "File Not Found" });
  } else sendJson(exchange, page(state), JSON_UTF8);
}

/** The pages by path. `/test/stats` exists only in this server. */
const PAGES: Readonly<Record<string, (state: ServerState) => unknown>> = {
  "/health": () => ({ status: "ok" }),
  "/v1/health": () => ({ status: "ok" }),
  "/props": toProperties,
  "/v1/models": toModels,
  "/models": toModels,
  "/slots": toSlots,
  "/test/stats": ({ stats }) => stats(),
};

/** Describes the slots. As many are busy as there are running sequences. */
function toSlots({ slotCount, contextLength, scheduler }: ServerState): unknown {
  return Array.from({ length: slotCount }, (_, id) => ({
    id,
    n_ctx: contextLength,
    speculative: false,
    is_processing: id < scheduler.runningCount,
  }));
}

function toProperties(state: ServerState): unknown {
  return {
    default_generation_settings: { params: {}, n_ctx: state.contextLength },
    total_slots: state.slotCount,
    model_alias: state.modelPath,
    model_path: state.modelPath,
    chat_template: "",
    build_info: "b0-test",
    is_sleeping: false,
  };
}

function toModels(state: ServerState): unknown {
  const meta = {
    n_vocab: state.vocabularySize,
    n_ctx: state.contextLength,
    n_ctx_train: state.contextLength,
  };
  const model = { id: state.modelPath, object: "model", created: 0, owned_by: "llamacpp", meta };
  return { object: "list", data: [model] };
}

function createServerState(options: LlamaCppTestServerOptions): ServerState {
  let idCount = 0;
  let slotIndex = 0;
  const { slotCount = 4, release = "2026-10" } = options;
  const traits = findRelease(LLAMA_CPP_RELEASES, { server: "llama.cpp", release });
  const core = createServerCore<LlamaCppSequenceRequest>(
    { ...options, maxRunning: slotCount },
    { weightVersion: () => "", stopsBeforeBudget: true },
  );
  return {
    ...core,
    modelPath: options.modelPath ?? "test-model.gguf",
    slotCount,
    vocabularySize: options.vocabularySize ?? 200_000,
    endTokenIds: options.endTokenIds ?? [2],
    partialIds: options.partialIds ?? [],
    unlikelyIds: options.unlikelyIds ?? [],
    speculates: options.speculates ?? false,
    refusesCutText: traits.refusesCutText,
    blamesClient: traits.blamesClient,
    textGrammar: options.textGrammar ?? traits.textGrammar,
    isLoading: false,
    newId: () => `task-${idCount++}`,
    nextSlot: () => slotIndex++ % slotCount,
  };
}
