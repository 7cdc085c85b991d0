import { readVariable } from "../secrets/read-variable.ts";
import type { Engine } from "../engine/engine.ts";
import type { HttpEngineOptions } from "../engine/http/http-engine-options.ts";
import type { EngineConfig } from "./config/engine-config.ts";
import { withoutUndefined } from "../values/without-undefined.ts";

/** Environment variables, which hold API keys. */
export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Creates a configuration's engine. Loads only the code of that engine.
 * @throws UsageError if a key's variable is not set, or if the model cannot be loaded.
 */
export async function createEngine(config: EngineConfig, env: Variables): Promise<Engine> {
  switch (config.kind) {
    case "sglang": {
      const { createSglangEngine } = await import("../engine/sglang/sglang-engine.ts");
      return createSglangEngine({
        ...serverOptions(config, env),
        ...withoutUndefined({ mode: config.mode }),
      });
    }
    case "vllm": {
      const { createVllmEngine } = await import("../engine/vllm/vllm-engine.ts");
      const { servedModel: model, api } = config;
      return createVllmEngine({
        ...serverOptions(config, env),
        ...withoutUndefined({ model, api }),
      });
    }
    case "llama-cpp": {
      const { createLlamaCppEngine } = await import("../engine/llama-cpp/llama-cpp-engine.ts");
      const { servedModel: model } = config;
      return createLlamaCppEngine({
        ...serverOptions(config, env),
        ...(model !== undefined && { model }),
      });
    }
    case "chat": {
      const { createChatEngine } = await import("../engine/chat/chat-engine.ts");
      const { apiKeyEnv, body, returnedMembers, servedModel, turnTimeoutMs, urls } = config;
      return createChatEngine({
        baseUrl: urls[0]!,
        model: servedModel,
        returnedMembers,
        turnMs: turnTimeoutMs,
        env,
        ...withoutUndefined({ apiKeyEnv, body }),
      });
    }
    case "llama": {
      const { createLlamaEngine } = await import("../engine/llama/llama-engine.ts");
      const { file, sequenceCount: sequences, threadCount: threads, contextLength } = config;
      return await createLlamaEngine({
        file,
        ...withoutUndefined({ sequences, threads, contextLength }),
      });
    }
    case "reference": {
      const { createReferenceEngine } = await import("../engine/reference/index.ts");
      const { modelDir, threadCount: threads, sequenceCount: maxBatch } = config;
      return await createReferenceEngine({ modelDir, ...withoutUndefined({ threads, maxBatch }) });
    }
  }
}

function serverOptions(
  { urls, turnTimeoutMs, apiKeyEnv }: Extract<EngineConfig, { readonly urls: unknown }>,
  env: Variables,
): HttpEngineOptions {
  return {
    url: urls,
    timeouts: { turnMs: turnTimeoutMs },
    // The tries last about two and a half minutes, because a restarted engine has to load its
    // weights.
    retry: { maxAttempts: 20 },
    ...withoutUndefined({ apiKey: readVariable(env, apiKeyEnv, "--api-key-env") }),
  };
}
