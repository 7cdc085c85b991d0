import { readdir, stat } from "node:fs/promises";
import { UsageError } from "../errors.ts";
import type { ParserSettings } from "../../packages/tool-parsers/src/choose-parser.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { loadTokenCodec } from "../tokenizer/load-codec.ts";
import type { ModelFolder } from "../tokenizer/model-folder.ts";
import { readModelText } from "../tokenizer/model-file.ts";
import { readModelFolder } from "../tokenizer/model-folder.ts";
import { assembleRenderer } from "./assemble-renderer.ts";
import { bindTemplate } from "./bound-template.ts";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import type { TemplateLimits } from "../../packages/chat-template/src/evaluate/budget.ts";
import type { HistoryPolicy } from "./capability/classify-template.ts";
import type { GuardPolicy } from "./guard/control-token-guard.ts";
import type { Renderer } from "./renderer.ts";

/** Options of `createRenderer()`. */
export interface RendererOptions {
  /** A folder in Hugging Face's layout; `tokenizer.json` and a chat template are needed. */
  readonly modelDir: string;
  /** Default `keep`. */
  readonly historyPolicy?: HistoryPolicy;
  /** Default `neutralise`. */
  readonly guardPolicy?: GuardPolicy;
  /** True if system messages and tool definitions are untrusted, like results. Default false. */
  readonly guardSystem?: boolean;
  /** Template variables, such as `enable_thinking`. They override the folder's special tokens. */
  readonly variables?: PyDict;
  /** Changes the chat template before it is compiled. */
  readonly editTemplate?: (source: string) => string;
  /** Parsers to name on the card. Default: those that fit the template. */
  readonly parsers?: ParserSettings;
  /** The ids or token literals that end a turn. Default: those of the folder and the template. */
  readonly stopTokens?: readonly (number | string)[];
  /** `full` renders each delta on the complete history, even if a short one suffices. */
  readonly deltaBase?: "full";
  /** The folder's tokenizer, if it is already loaded. */
  readonly codec?: TokenCodec;
  /**
   * The date that templates print as today, for the renderer's lifetime, including runs. Default: the time of the
   * call, and in a run the time of its start.
   */
  readonly now?: Date;
  /** The release of transformers to render as, such as `5.20`. Default: the newest known one. */
  readonly transformers?: string;
  /** Limits of one rendering that differ from the default. */
  readonly templateLimits?: Partial<TemplateLimits>;
}

/**
 * Makes the renderer of a model: loads its tokenizer, compiles its chat template and measures the template's
 * behaviour.
 *
 * @throws UsageError if the folder, its tokenizer or its chat template is missing or unusable, if the history
 * policy refuses the template, if the tokenizer may turn any word into an added token and the guard policy forbids
 * that, or if a given parser or stop token does not exist.
 */
export async function createRenderer(options: RendererOptions): Promise<Renderer> {
  const { historyPolicy = "keep", guardPolicy = "neutralise" } = options;
  const modelDir = await findModel(options.modelDir);
  const folder = await readModelFolder(modelDir);
  await assertBosIsKnown(folder, options);
  const template = compileFolderTemplate(folder, options);
  const codec = options.codec ?? (await loadTokenCodec(modelDir));
  const { eos_token: endToken } = folder.specialTokens;
  const endId = endToken === undefined ? undefined : codec.idOf(endToken);
  const renderer = await assembleRenderer({
    template: bindTemplate(
      template,
      new Map([...Object.entries(folder.specialTokens), ...(options.variables ?? [])]),
      options.now ?? new Date(),
      options.transformers,
    ),
    codec,
    source: modelDir,
    endIds: [...new Set([...folder.eosTokenIds, ...(endId === undefined ? [] : [endId])])],
    historyPolicy,
    guardPolicy,
    guardSystem: options.guardSystem ?? false,
    ...(options.variables !== undefined && { variables: options.variables }),
    ...(options.parsers !== undefined && { parsers: options.parsers }),
    ...(options.transformers !== undefined && { transformers: options.transformers }),
    ...(folder.responseTemplate !== undefined && { responseTemplate: folder.responseTemplate }),
    ...(options.stopTokens !== undefined && {
      stopIds: options.stopTokens.map((token) => findStopId(token, codec)),
    }),
    ...(options.deltaBase !== undefined && { deltaBase: options.deltaBase }),
  });
  return options.now === undefined ? renderer : { ...renderer, now: options.now };
}

/** Checks that the BOS token is known. A prompt must not lack it because the file that names it is missing. */
async function assertBosIsKnown(
  { dir, chatTemplate = "", chatTemplateFile, specialTokens }: ModelFolder,
  { variables }: RendererOptions,
): Promise<void> {
  const name = "bos_token";
  if (!/\bbos_token\b/.test(chatTemplate)) return;
  if (specialTokens[name] !== undefined || variables?.has(name) === true) return;
  if ((await readModelText(dir, "tokenizer_config.json")) !== undefined) return;
  throw new UsageError(
    `Cannot render for the model in ${dir}: ${chatTemplateFile ?? "its template"} prints ${name}, and there is no ` +
      "tokenizer_config.json to name that token; expected the model's own, or the template's variable",
  );
}

function findStopId(token: number | string, codec: TokenCodec): number {
  const id = typeof token === "number" ? token : codec.idOf(token);
  if (id !== undefined && Number.isInteger(id) && id >= 0 && id < codec.vocabularySize) return id;
  throw new UsageError(
    `Cannot stop at ${JSON.stringify(token)}: expected a token of the model, or an id below ` +
      String(codec.vocabularySize),
  );
}

/** The model's folder; downloads a model given by name. */
async function findModel(name: string): Promise<string> {
  const { findModelFolder } = await import("../hub/find-model-folder.ts");
  const modelDir = await findModelFolder(name);
  const found = await stat(modelDir).catch(() => undefined);
  if (found?.isDirectory() === true) {
    if ((await readdir(modelDir)).length > 0) return modelDir;
    throw new UsageError(
      `Cannot load the model: ${modelDir} is empty; expected a folder with tokenizer.json and a chat template`,
    );
  }
  throw new UsageError(
    `Cannot load the model: ${modelDir} is ${found === undefined ? "absent" : "no folder"}; ` +
      "expected a folder with tokenizer.json and a chat template",
  );
}

function compileFolderTemplate(
  { dir, chatTemplate, chatTemplateFile }: ModelFolder,
  { editTemplate = (source) => source, templateLimits }: RendererOptions,
): ReturnType<typeof compileChatTemplate> {
  if (chatTemplate === undefined) {
    throw new UsageError(
      `Cannot render for the model in ${dir}: it has no chat template; put one into ` +
        "chat_template.jinja (base models have none, their instruction-tuned versions do)",
    );
  }
  try {
    return compileChatTemplate(editTemplate(chatTemplate), templateLimits);
  } catch (cause) {
    if (!(cause instanceof UsageError)) throw cause;
    throw new UsageError(
      `Cannot use the chat template in ${dir}, file ${chatTemplateFile}: ${cause.message}`,
      { cause },
    );
  }
}
