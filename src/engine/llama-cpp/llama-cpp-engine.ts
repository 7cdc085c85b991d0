import type { HttpEngine } from "../http/http-engine.ts";
import { createHttpEngine } from "../http/http-engine.ts";
import { describeLlamaCpp } from "./describe-llama-cpp.ts";
import { loadOfLlamaCpp } from "./llama-cpp-load.ts";
import type { LlamaCppEngineOptions } from "./llama-cpp-options.ts";
import { toLlamaCppSettings } from "./llama-cpp-options.ts";
import { createLlamaCppProtocol } from "./llama-cpp-protocol.ts";

/** One or several llama.cpp servers. */
export interface LlamaCppEngine extends HttpEngine {
  readonly kind: "llama-cpp";
}

/**
 * Connects to llama.cpp's own server. Makes no request itself.
 *
 * Each turn is one `POST /completion` without streaming, because the server's stream omits tokens
 * that end within a character. `onTokens` is called when the turn is complete.
 *
 * The server stops only at the model's own end ids. Tokens after another of the request's stop ids
 * are cut off and recorded as discarded.
 *
 * Logprobs are those of the raw logits at any temperature. A token that ends within a character
 * costs one more short request, because the server reports no logprob for it.
 *
 * Use the model in its trained precision: quantised weights are another policy.
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
