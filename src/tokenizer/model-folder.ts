import type { JsonObject } from "../values/is-object.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { isPyDict } from "../../packages/python-values/src/value.ts";
import type { ExpertShape } from "../columns/column-specs.ts";
import { readExpertShape } from "./read-expert-shape.ts";
import { assertModelFolder, objectOf, readModelJson, readModelText } from "./model-file.ts";

/** The files of a model folder other than its tokenizer and weights. */
export interface ModelFolder {
  readonly dir: string;
  /** The source of the chat template. Absent if the folder has none. */
  readonly chatTemplate?: string;
  /** The file with the chat template. */
  readonly chatTemplateFile?: string;
  /** Literals that templates print, such as `bos_token` and `eos_token`, if they are set. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /**
   * Ids that end generation, from generation_config.json or config.json. Empty if neither lists
   * any.
   */
  readonly eosTokenIds: readonly number[];
  /** Maximum length of a sequence in tokens, from config.json. */
  readonly contextLength?: number;
  /** The shape of a mixture of experts, from config.json. Absent for other models. */
  readonly experts?: ExpertShape;
  /** The format of the model's turns, from tokenizer_config.json. */
  readonly responseTemplate?: PyDict;
}

/**
 * Reads a model folder in Hugging Face's layout.
 *
 * Of several chat templates, the one for tools is used. A template in its own file has priority
 * over one in `tokenizer_config.json`.
 *
 * **Source:** huggingface/transformers, `src/transformers/tokenization_utils_base.py`.
 *
 * @throws UsageError if the folder is missing, or one of its files is invalid.
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
  // A model for text and images has a separate configuration for text.
  const textConfig = objectOf(config["text_config"]);
  const contextLength = config["max_position_embeddings"] ?? textConfig["max_position_embeddings"];
  const experts = readExpertShape(config);
  return {
    dir,
    ...(experts !== undefined && { experts }),
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

/** Reads the response template with Python's JSON values, which distinguish 1 from 1.0. */
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
  for (const [file, config] of [
    ["chat_template.json", await readModelJson(dir, "chat_template.json")],
    ["tokenizer_config.json", tokenizerConfig],
  ] as const) {
    const chatTemplate = pickTemplate(config?.["chat_template"]);
    if (chatTemplate !== undefined) return { chatTemplate, chatTemplateFile: file };
  }
  return {};
}

/** Selects one of several named templates. A single template is a text. */
function pickTemplate(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const named = Array.isArray(value)
    ? Object.fromEntries(value.map(objectOf).map(({ name, template }) => [String(name), template]))
    : objectOf(value);
  const chosen = named["tool_use"] ?? named["default"];
  return typeof chosen === "string" ? chosen : undefined;
}

const specialTokenName = /^(?:bos|cls|eos|mask|pad|sep|unk)_token$/;

/**
 * Reads special tokens by name. A model's own tokens, such as `image_token`, are in a separate
 * object.
 */
function readSpecialTokens(config: JsonObject): Record<string, string> {
  const own = Object.entries(config).filter(([name]) => specialTokenName.test(name));
  const further = Object.entries(objectOf(config["extra_special_tokens"]));
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
