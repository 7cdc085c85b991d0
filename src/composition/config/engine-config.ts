import { requireFreeMembers } from "../../engine/chat/chat-body.ts";
import { secretsOfNamed } from "../../secrets/find-secrets.ts";
import type { OtherMembers } from "../../engine/chat/chat-turn.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { isObject } from "../../values/is-object.ts";
import type { SglangEngineOptions } from "../../engine/sglang/sglang-options.ts";
import type { VllmEngineOptions } from "../../engine/vllm/vllm-options.ts";
import { UsageError } from "../../errors.ts";
import type { limitSettings } from "./limits-config.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { count, requireSetting, text, type Setting, type SettingValues } from "./setting.ts";

/** The engines that settings can name. */
const engineNames = ["sglang", "vllm", "llama-cpp", "llama", "reference", "chat"] as const;

/** One of `engineNames`. */
export type EngineName = (typeof engineNames)[number];

/** The settings of the inference engine. */
export const engineSettings = [
  {
    name: "engine",
    kind: { type: "choice", choices: engineNames },
    help:
      "inference engine: a server, or in this process (llama: GGUF, reference: small models); chat: any " +
      "server of Chat Completions, for `eval` only",
    default: "sglang",
  },
  {
    name: "url",
    kind: { type: "list" },
    help: "address of the engine or router; repeat it for several workers; chat: with /v1",
    operational: true,
  },
  {
    name: "engine-mode",
    kind: { type: "choice", choices: ["auto", "router", "direct"] },
    help: "sglang: treat the address as a router or as a worker (default: auto)",
    operational: true,
  },
  {
    name: "engine-api",
    kind: { type: "choice", choices: ["auto", "generate", "completions"] },
    help: "vllm: /inference/v1/generate or /v1/completions (default: the first the server has)",
    operational: true,
  },
  {
    name: "served-model",
    kind: text,
    value: "name",
    help: "vllm, llama-cpp, chat: name of the server's model or LoRA adapter",
  },
  {
    name: "api-key-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the engine's API key",
    operational: true,
  },
  {
    name: "chat-body",
    kind: text,
    value: "json",
    help:
      'chat: further members of each request, such as \'{"reasoning_effort": "low"}\'; null leaves ' +
      "out a member",
  },
  {
    name: "chat-return",
    kind: { type: "list" },
    value: "member",
    help:
      "chat: member of the model's messages that returns to the server in later turns, such as " +
      "reasoning_content; repeatable",
  },
  {
    name: "gguf",
    kind: text,
    value: "file",
    help: "llama: the weights, a GGUF file or hf:owner/repo:file",
    operational: true,
  },
  {
    name: "threads",
    kind: count(1),
    value: "n",
    help: "engines in this process: threads (default: llama: all cores but one, reference: all cores)",
    operational: true,
  },
  {
    name: "sequences",
    kind: count(1),
    value: "n",
    help: "engines in this process: turns at once (default: llama: 2, reference: 64 per thread)",
    operational: true,
  },
] as const satisfies readonly Setting[];

/** A server: its addresses, and how to call it. */
export interface ServerConfig {
  /** At least one address. */
  readonly urls: readonly string[];
  /** The environment variable that holds the key. */
  readonly apiKeyEnv?: string;
  /** The time limit of a turn including all retries, in milliseconds. */
  readonly turnTimeoutMs: number;
}

/** The configuration of an inference engine. */
export type EngineConfig =
  | ({ readonly kind: "sglang" } & ServerConfig & Pick<SglangEngineOptions, "mode">)
  | ({ readonly kind: "vllm"; readonly servedModel?: string } & ServerConfig &
      Pick<VllmEngineOptions, "api">)
  | ({ readonly kind: "llama-cpp"; readonly servedModel?: string } & ServerConfig)
  | ({
      readonly kind: "chat";
      readonly servedModel: string;
      /** Further members of each request. */
      readonly body?: OtherMembers;
      /** Members of the model's messages that return to the server. */
      readonly returnedMembers: readonly string[];
    } & ServerConfig)
  | {
      readonly kind: "llama";
      /** A GGUF file, or `hf:owner/repo:file`. */
      readonly file: string;
      readonly threadCount?: number;
      /** The number of turns that are computed at the same time. */
      readonly sequenceCount?: number;
      /** Maximum number of ids in prompt and output together. */
      readonly contextLength?: number;
    }
  | {
      readonly kind: "reference";
      readonly modelDir: string;
      readonly threadCount?: number;
      /** The number of turns that are computed at the same time. */
      readonly sequenceCount?: number;
    };

/** The values of the settings that describe an engine: its own, and those that it shares. */
type EngineValues = SettingValues<
  | (typeof engineSettings)[number]
  | Extract<(typeof limitSettings)[number], { readonly name: "max-context" | "engine-timeout" }>
> & {
  /** The model folder of the renderer. */
  readonly model: string | undefined;
};

const serverNames: readonly EngineName[] = ["sglang", "vllm", "llama-cpp", "chat"];
const inProcessNames: readonly EngineName[] = ["llama", "reference"];

/** Settings that only some engines have, with the names of these engines. */
const ownSettings = {
  url: serverNames,
  "api-key-env": serverNames,
  "engine-mode": ["sglang"],
  "engine-api": ["vllm"],
  "served-model": ["vllm", "llama-cpp", "chat"],
  "chat-body": ["chat"],
  "chat-return": ["chat"],
  gguf: ["llama"],
  threads: inProcessNames,
  sequences: inProcessNames,
} as const satisfies Partial<Record<keyof EngineValues, readonly EngineName[]>>;

/**
 * Reads the configuration of the engine.
 *
 * @throws UsageError for a setting that is missing, or that the engine does not have.
 */
export function readEngineConfig(values: EngineValues): EngineConfig {
  const { engine: kind, gguf, model, "served-model": servedModel } = values;
  checkOwnSettings(values);
  const computing = withoutUndefined({
    threadCount: values.threads,
    sequenceCount: values.sequences,
  });
  switch (kind) {
    case "sglang":
      return { kind, ...readServer(values), ...withoutUndefined({ mode: values["engine-mode"] }) };
    case "vllm":
      return {
        kind,
        ...readServer(values),
        ...withoutUndefined({ servedModel, api: values["engine-api"] }),
      };
    case "llama-cpp":
      return { kind, ...readServer(values), ...(servedModel !== undefined && { servedModel }) };
    case "chat":
      return { kind, ...readChat(values) };
    case "llama": {
      const file = requireSetting(gguf, "gguf", "the model, a GGUF file or hf:owner/repo:file");
      return {
        kind,
        file,
        ...computing,
        ...withoutUndefined({ contextLength: values["max-context"] }),
      };
    }
    case "reference": {
      const remedy = "the model's folder, with config.json and weights";
      return { kind, modelDir: requireSetting(model, "model", remedy), ...computing };
    }
  }
}

function checkOwnSettings(values: EngineValues): void {
  for (const [name, owners] of Object.entries(ownSettings)) {
    const value = values[name as keyof typeof ownSettings];
    const isGiven = Array.isArray(value) ? value.length > 0 : value !== undefined;
    if (!isGiven || (owners as readonly EngineName[]).includes(values.engine)) continue;
    throw new UsageError(
      `Cannot use --${name} with --engine ${values.engine}: it belongs to ${owners.join(", ")}`,
    );
  }
}

function readChat(values: EngineValues): Omit<Extract<EngineConfig, { kind: "chat" }>, "kind"> {
  const server = readServer(values);
  if (server.urls.length > 1) {
    throw new UsageError(
      "Cannot use several --url with --engine chat: expected one address, such as https://api.example.com/v1",
    );
  }
  const remedy = "the server's name for the model, such as gpt-5";
  const body = values["chat-body"];
  return {
    ...server,
    servedModel: requireSetting(values["served-model"], "served-model", remedy),
    returnedMembers: values["chat-return"] ?? [],
    ...(body !== undefined && { body: readBody(body) }),
  };
}

function readBody(text: string): OtherMembers {
  const body = parseJsonText(text);
  if (!isObject(body)) {
    throw new UsageError(
      `Cannot read --chat-body ${text}: expected a JSON object, such as '{"reasoning_effort": "low"}'`,
    );
  }
  requireFreeMembers(body);
  requireNoSecret(body);
  return body;
}

/** Checks that a body has no key: settings are written to the run's folder. */
function requireNoSecret(body: OtherMembers): void {
  const secret = Object.entries(body).find(([name, value]) => {
    // OpenAI's name for a group of requests with the same prefix.
    if (name === "prompt_cache_key") return false;
    const text = typeof value === "string" ? { [name]: value } : { body: JSON.stringify(value) };
    return secretsOfNamed(text).secrets.length > 0;
  });
  if (secret === undefined) return;
  throw new UsageError(
    `Cannot use ${secret[0]} in --chat-body: it looks like a secret, and settings are written to the run's folder; ` +
      "expected --api-key-env to name an environment variable with the key",
  );
}

function readServer(values: EngineValues): ServerConfig {
  const urls = values.url ?? [];
  if (urls.length === 0) {
    const example =
      values.engine === "chat" ? "https://api.example.com/v1" : "http://127.0.0.1:30000";
    throw new UsageError(`Missing --url: the address of the engine, such as ${example}`);
  }
  return {
    urls,
    turnTimeoutMs: values["engine-timeout"] * 1000,
    ...withoutUndefined({ apiKeyEnv: values["api-key-env"] }),
  };
}
