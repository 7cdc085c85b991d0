import { readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";

/** What a model folder says beside its tokenizer and weights. */
export interface ModelFolder {
  readonly dir: string;
  /** The chat template's source; absent where the folder has none. */
  readonly chatTemplate?: string;
  /** Which file the chat template comes from. */
  readonly chatTemplateFile?: string;
  /** Literals that templates print: `bos_token`, `eos_token`, `pad_token`, `unk_token`, where set. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Ids that end generation, from generation_config.json or config.json; empty where neither says. */
  readonly eosTokenIds: readonly number[];
  /** Longest sequence that the model was made for, where config.json says so. */
  readonly contextLength?: number;
}

const specialTokenNames = ["bos_token", "eos_token", "pad_token", "unk_token"] as const;

/**
 * Reads a model folder in Hugging Face's layout. The chat template is taken from
 * `chat_template.jinja`, else `chat_template.json`, else `tokenizer_config.json`, as transformers
 * does (transformers, tokenization_utils_base.py).
 *
 * @throws UsageError where a file of the folder is broken.
 */
export async function readModelFolder(dir: string): Promise<ModelFolder> {
  const tokenizerConfig = (await readJson(dir, "tokenizer_config.json")) ?? {};
  const generationConfig = await readJson(dir, "generation_config.json");
  const config = await readJson(dir, "config.json");
  const contextLength = config?.["max_position_embeddings"];
  return {
    dir,
    ...(await readChatTemplate(dir, tokenizerConfig)),
    specialTokens: readSpecialTokens(tokenizerConfig),
    eosTokenIds:
      readIds(generationConfig?.["eos_token_id"]) ?? readIds(config?.["eos_token_id"]) ?? [],
    ...(typeof contextLength === "number" ? { contextLength } : {}),
  };
}

type JsonObject = Readonly<Record<string, unknown>>;

async function readChatTemplate(
  dir: string,
  tokenizerConfig: JsonObject,
): Promise<Pick<ModelFolder, "chatTemplate" | "chatTemplateFile">> {
  const source = await readText(dir, "chat_template.jinja");
  if (source !== undefined) return { chatTemplate: source, chatTemplateFile: "chat_template.jinja" };
  for (const [file, holder] of [
    ["chat_template.json", await readJson(dir, "chat_template.json")],
    ["tokenizer_config.json", tokenizerConfig],
  ] as const) {
    const chatTemplate = pickTemplate(holder?.["chat_template"]);
    if (chatTemplate !== undefined) return { chatTemplate, chatTemplateFile: file };
  }
  return {};
}

/** A template may be one text or a list of named ones; with tools in play, `tool_use` comes first. */
function pickTemplate(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const named = new Map(
    value.map((entry: { name?: unknown; template?: unknown }) => [entry.name, entry.template]),
  );
  const chosen = named.get("tool_use") ?? named.get("default");
  return typeof chosen === "string" ? chosen : undefined;
}

function readSpecialTokens(tokenizerConfig: JsonObject): Record<string, string> {
  return Object.fromEntries(
    specialTokenNames.flatMap((name) => {
      const value = tokenizerConfig[name];
      const content = typeof value === "string" ? value : (value as { content?: unknown } | null)?.content;
      return typeof content === "string" ? [[name, content]] : [];
    }),
  );
}

function readIds(value: unknown): readonly number[] | undefined {
  if (typeof value === "number") return [value];
  if (!Array.isArray(value)) return undefined;
  return value.filter((id): id is number => typeof id === "number");
}

async function readJson(dir: string, name: string): Promise<JsonObject | undefined> {
  const text = await readText(dir, name);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as JsonObject;
  } catch (cause) {
    throw new UsageError(`Cannot read ${path.join(dir, name)}: it is no JSON, ${describeError(cause)}`);
  }
}

async function readText(dir: string, name: string): Promise<string | undefined> {
  try {
    return await readFile(path.join(dir, name), "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new UsageError(`Cannot read ${path.join(dir, name)}: ${describeError(error)}`);
  }
}
