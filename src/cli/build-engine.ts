import type { Engine } from "../engine/engine.ts";
import type { HttpEngineOptions } from "../engine/http-engine-options.ts";
import { UsageError } from "../errors.ts";
import {
  listOf,
  numberOf,
  numberWithDefault,
  requiredText,
  textOf,
  type Settings,
} from "./option.ts";

/** The engines that settings can name. */
export const engineNames = ["sglang", "vllm", "llama-cpp", "llama", "reference"] as const;

type EngineName = (typeof engineNames)[number];

const serverNames: readonly EngineName[] = ["sglang", "vllm", "llama-cpp"];
const inProcessNames: readonly EngineName[] = ["llama", "reference"];

/** Settings that not every engine has. */
const ownSettings: Readonly<Record<string, readonly EngineName[]>> = {
  url: serverNames,
  "api-key-env": serverNames,
  "engine-mode": ["sglang"],
  "engine-api": ["vllm"],
  "served-model": ["vllm", "llama-cpp"],
  gguf: ["llama"],
  threads: inProcessNames,
  sequences: inProcessNames,
};

/** Episodes at once where nothing says how many. */
const DEFAULT_CONCURRENCY = 64;
/** The llama engine's own default. */
const DEFAULT_LLAMA_SEQUENCES = 2;

/**
 * The engine that the settings name. The code of each is loaded only where it is wanted.
 *
 * @throws UsageError for a setting that is missing, or that the engine does not have.
 */
export async function buildEngine(settings: Settings): Promise<Engine> {
  const name = engineOf(settings);
  checkOwnSettings(settings, name);
  return await builders[name](settings);
}

/** How many episodes are played at once: the setting, or what suits the engine. */
export function concurrencyOf(settings: Settings): number {
  const fallback =
    engineOf(settings) === "llama"
      ? (numberOf(settings, "sequences") ?? DEFAULT_LLAMA_SEQUENCES)
      : DEFAULT_CONCURRENCY;
  return numberOf(settings, "concurrency") ?? fallback;
}

const builders: Readonly<Record<EngineName, (settings: Settings) => Promise<Engine>>> = {
  sglang: async (settings) => {
    const { createSglangEngine } = await import("../engine/sglang/sglang-engine.ts");
    const mode = textOf(settings, "engine-mode") as "auto" | "router" | "direct" | undefined;
    return createSglangEngine({ ...serverOptions(settings), ...given({ mode }) });
  },
  vllm: async (settings) => {
    const { createVllmEngine } = await import("../engine/vllm/vllm-engine.ts");
    const model = textOf(settings, "served-model");
    const api = textOf(settings, "engine-api") as "auto" | "generate" | "completions" | undefined;
    return createVllmEngine({ ...serverOptions(settings), ...given({ model, api }) });
  },
  "llama-cpp": async (settings) => {
    const { createLlamaCppEngine } = await import("../engine/llama-cpp/llama-cpp-engine.ts");
    const model = textOf(settings, "served-model");
    return createLlamaCppEngine({ ...serverOptions(settings), ...given({ model }) });
  },
  llama: async (settings) => {
    const { createLlamaEngine } = await import("../engine/llama/llama-engine.ts");
    return await createLlamaEngine({
      file: requiredText(settings, "gguf", "the model, a GGUF file or hf:owner/repo:file"),
      ...given({
        sequences: numberOf(settings, "sequences"),
        threads: numberOf(settings, "threads"),
        contextLength: numberOf(settings, "max-context"),
      }),
    });
  },
  reference: async (settings) => {
    const { createReferenceEngine } = await import("../engine/reference/reference-engine.ts");
    return await createReferenceEngine({
      modelDir: requiredText(settings, "model", "the model's folder, with config.json and weights"),
      ...given({
        threads: numberOf(settings, "threads"),
        maxBatch: numberOf(settings, "sequences"),
      }),
    });
  },
};

function engineOf(settings: Settings): EngineName {
  return (textOf(settings, "engine") ?? "sglang") as EngineName;
}

function checkOwnSettings(settings: Settings, engine: EngineName): void {
  for (const [name, owners] of Object.entries(ownSettings)) {
    const isGiven = Array.isArray(settings[name])
      ? listOf(settings, name).length > 0
      : settings[name] !== undefined;
    if (!isGiven || owners.includes(engine)) continue;
    throw new UsageError(
      `Cannot use --${name} with --engine ${engine}: it belongs to ${owners.join(", ")}`,
    );
  }
}

function serverOptions(settings: Settings): HttpEngineOptions {
  const url = listOf(settings, "url");
  if (url.length === 0) {
    throw new UsageError(
      "Missing --url: the address of the engine, such as http://127.0.0.1:30000",
    );
  }
  return {
    url,
    timeouts: { turnMs: numberWithDefault(settings, "engine-timeout") * 1000 },
    // About two and a half minutes: an engine that is restarted has to load its weights again.
    retry: { maxAttempts: 20 },
    ...given({ apiKey: readSecret(settings, "api-key-env") }),
  };
}

/** Keys come from the environment only, so that they are in no file and no process list. */
function readSecret(settings: Settings, name: string): string | undefined {
  const variable = textOf(settings, name);
  if (variable === undefined) return undefined;
  const secret = process.env[variable];
  if (secret === undefined || secret === "") {
    throw new UsageError(`Cannot read the key for --${name}: the variable ${variable} is not set`);
  }
  return secret;
}

/** The members that have a value. */
function given<T extends Readonly<Record<string, unknown>>>(
  members: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
