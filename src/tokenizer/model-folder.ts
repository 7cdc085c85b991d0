import { parsePythonJson } from "../python/json/json-parse.ts";
import type { PyDict } from "../python/value.ts";
import { isPyDict } from "../python/value.ts";
import { assertModelFolder, readModelJson, readModelText } from "./model-file.ts";
import type { JsonObject } from "./model-file.ts";

/** What a model folder says beside its tokenizer and weights. */
export interface ModelFolder {
  readonly dir: string;
  /** The chat template's source; absent where the folder has none. */
  readonly chatTemplate?: string;
  /** Which file the chat template comes from. */
  readonly chatTemplateFile?: string;
  /** Literals that templates print, such as `bos_token` and `eos_token`, where they are set. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Ids that end generation, from generation_config.json or config.json; empty where neither says. */
  readonly eosTokenIds: readonly number[];
  /** Longest sequence that the model was made for, in tokens, where config.json says so. */
  readonly contextLength?: number;
  /** How the model says that its turns are written, where tokenizer_config.json does. */
  readonly responseTemplate?: PyDict;
}

/**
 * Reads a model folder in Hugging Face's layout.
 *
 * Of several chat templates the one for tools is taken, and a template in a file of its own goes
 * before one in `tokenizer_config.json`.
 *
 * **Source:** huggingface/transformers, `src/transformers/tokenization_utils_base.py`.
 *
 * @throws UsageError where the folder is missing, or a file of it is broken.
 */
export async function readModelFolder(dir: string): Promise<ModelFolder> {
  await assertModelFolder(dir);
  const [tokenizerConfig = {}, specialTokensMap = {}, generationConfig = {}, config = {}] =
    await Promise.all(
      [
        "tokenizer_config.json",
        "special_tokens_map.json",
        "generation_config.json",
        "config.json",
      ].map((name) => readModelJson(dir, name)),
    );
  // The configuration of a model for text and images keeps the text's part apart.
  const textConfig = objectOf(config["text_config"]);
  const contextLength = config["max_position_embeddings"] ?? textConfig["max_position_embeddings"];
  return {
    dir,
    ...(await readChatTemplate(dir, tokenizerConfig)),
    specialTokens: {
      ...readSpecialTokens(specialTokensMap),
      ...readSpecialTokens(tokenizerConfig),
    },
    eosTokenIds:
      readIds(generationConfig["eos_token_id"]) ??
      readIds(config["eos_token_id"]) ??
      readIds(textConfig["eos_token_id"]) ??
      [],
    ...(typeof contextLength === "number" && { contextLength }),
    ...(await readResponseTemplate(dir, tokenizerConfig)),
  };
}

/** Read as Python reads it, which keeps 1 and 1.0 apart. */
async function readResponseTemplate(
  dir: string,
  tokenizerConfig: JsonObject,
): Promise<Pick<ModelFolder, "responseTemplate">> {
  if (typeof tokenizerConfig["response_template"] !== "object") return {};
  const config = parsePythonJson((await readModelText(dir, "tokenizer_config.json")) ?? "null");
  const responseTemplate = isPyDict(config) ? config.get("response_template") : undefined;
  return isPyDict(responseTemplate) ? { responseTemplate } : {};
}

async function readChatTemplate(
  dir: string,
  tokenizerConfig: JsonObject,
): Promise<Pick<ModelFolder, "chatTemplate" | "chatTemplateFile">> {
  for (const file of ["additional_chat_templates/tool_use.jinja", "chat_template.jinja"]) {
    const chatTemplate = await readModelText(dir, file);
    if (chatTemplate !== undefined) return { chatTemplate, chatTemplateFile: file };
  }
  for (const [file, holder] of [
    ["chat_template.json", await readModelJson(dir, "chat_template.json")],
    ["tokenizer_config.json", tokenizerConfig],
  ] as const) {
    const chatTemplate = pickTemplate(holder?.["chat_template"]);
    if (chatTemplate !== undefined) return { chatTemplate, chatTemplateFile: file };
  }
  return {};
}

/** A template is one text, or there are several with names. */
function pickTemplate(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const named = Array.isArray(value)
    ? Object.fromEntries(value.map(objectOf).map(({ name, template }) => [String(name), template]))
    : objectOf(value);
  const chosen = named["tool_use"] ?? named["default"];
  return typeof chosen === "string" ? chosen : undefined;
}

const specialTokenName = /^(?:bos|cls|eos|mask|pad|sep|unk)_token$/;

/** Special tokens by name; a model's own ones, such as `image_token`, stand in an object apart. */
function readSpecialTokens(holder: JsonObject): Record<string, string> {
  const own = Object.entries(holder).filter(([name]) => specialTokenName.test(name));
  const further = Object.entries(objectOf(holder["extra_special_tokens"]));
  return Object.fromEntries(
    [...further, ...own].flatMap(([name, value]) => {
      const content = typeof value === "string" ? value : objectOf(value)["content"];
      return typeof content === "string" ? [[name, content]] : [];
    }),
  );
}

function readIds(value: unknown): readonly number[] | undefined {
  if (typeof value === "number") return [value];
  if (!Array.isArray(value)) return undefined;
  return value.filter((id): id is number => typeof id === "number");
}

/** The value as an object; an empty one where it is none. */
function objectOf(value: unknown): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : {};
}
