import type { HttpEngine } from "../http/http-engine.ts";
import { createHttpEngine } from "../http/http-engine.ts";
import { describeLlamaCpp } from "./describe-llama-cpp.ts";
import { loadOfLlamaCpp } from "./llama-cpp-load.ts";
import type { LlamaCppEngineOptions } from "./llama-cpp-options.ts";
import { toLlamaCppSettings } from "./llama-cpp-options.ts";
import { createLlamaCppProtocol } from "./llama-cpp-protocol.ts";

/** A llama.cpp server, or several. */
export interface LlamaCppEngine extends HttpEngine {
  readonly kind: "llama-cpp";
}

/**
 * Connects to llama.cpp's own server. Makes no request by itself.
 *
 * Each turn is one `POST /completion`, not streamed: of a token that ends within a character the
 * server's stream says nothing, so who listens is told of the turn's tokens when it is whole. The server ends a turn at the model's own ends
 * only: what it samples behind another of the request's stop ids is cut off, and recorded as
 * discarded. Logprobs are those of the raw logits, whatever the temperature. Tokens that end within a
 * character cost one short request each, because the server reports no logprob for them.
 *
 * The model must be as trained: quantised weights sample from another policy.
 *
 * @throws UsageError for options that cannot be used.
 */
export function createLlamaCppEngine(options: LlamaCppEngineOptions): LlamaCppEngine {
  const settings = toLlamaCppSettings(options);
  return createHttpEngine("llama-cpp", settings, (closing) => ({
    protocol: createLlamaCppProtocol(settings),
    load: (worker, { signal }) =>
      loadOfLlamaCpp(worker, { settings, signal, closing, expected: "a llama.cpp server" }),
    describe: (workers, { signal }) => describeLlamaCpp(workers, { settings, signal, closing }),
  }));
}
