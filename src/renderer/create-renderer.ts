import { stat } from "node:fs/promises";
import { UsageError } from "../errors.ts";
import type { PyDict } from "../python/value.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { loadTokenCodec } from "../tokenizer/load-codec.ts";
import type { ModelFolder } from "../tokenizer/model-folder.ts";
import { readModelFolder } from "../tokenizer/model-folder.ts";
import { assembleRenderer } from "./assemble-renderer.ts";
import { bindTemplate } from "./bound-template.ts";
import { compileChatTemplate } from "./chat-template.ts";
import type { HistoryPolicy } from "./classify-template.ts";
import type { GuardPolicy } from "./control-token-guard.ts";
import type { Renderer } from "./renderer.ts";

/** How a model's renderer is made. */
export interface RendererOptions {
  /** A folder in Hugging Face's layout; `tokenizer.json` and a chat template are needed. */
  readonly modelDir: string;
  /** Default `keep`. */
  readonly historyPolicy?: HistoryPolicy;
  /** Default `neutralise`. */
  readonly guardPolicy?: GuardPolicy;
  /** Whether system messages and tool definitions are as little trusted as results. Default false. */
  readonly guardSystem?: boolean;
  /** Template variables, such as `enable_thinking`; they win over the folder's special tokens. */
  readonly variables?: PyDict;
  /** Changes the chat template before it is compiled. */
  readonly editTemplate?: (source: string) => string;
  /** The folder's tokenizer, where it is loaded already. */
  readonly codec?: TokenCodec;
  /**
   * What templates that print the date take for today, over the renderer's whole life. Default the
   * time of the call.
   */
  readonly now?: Date;
}

/**
 * Makes the renderer of a model: loads its tokenizer, compiles its chat template and measures what
 * the template does.
 *
 * @throws UsageError where the folder, its tokenizer or its chat template is missing or cannot be
 *   used, or where the history policy refuses the template.
 */
export async function createRenderer(options: RendererOptions): Promise<Renderer> {
  const { modelDir, historyPolicy = "keep", guardPolicy = "neutralise" } = options;
  await requireFolder(modelDir);
  const folder = await readModelFolder(modelDir);
  const template = compileFolderTemplate(folder, options.editTemplate);
  const codec = options.codec ?? (await loadTokenCodec(modelDir));
  const { eos_token: endToken } = folder.specialTokens;
  const endId = endToken === undefined ? undefined : codec.idOf(endToken);
  return await assembleRenderer({
    template: bindTemplate(
      template,
      new Map([...Object.entries(folder.specialTokens), ...(options.variables ?? [])]),
      options.now ?? new Date(),
    ),
    codec,
    source: modelDir,
    endIds: [...new Set([...folder.eosTokenIds, ...(endId === undefined ? [] : [endId])])],
    historyPolicy,
    guardPolicy,
    guardSystem: options.guardSystem ?? false,
  });
}

async function requireFolder(modelDir: string): Promise<void> {
  const found = await stat(modelDir).catch(() => undefined);
  if (found?.isDirectory() === true) return;
  throw new UsageError(
    `Cannot load the model: ${modelDir} is ${found === undefined ? "absent" : "no folder"}; ` +
      "expected a folder with tokenizer.json and a chat template",
  );
}

function compileFolderTemplate(
  { dir, chatTemplate, chatTemplateFile }: ModelFolder,
  edit: (source: string) => string = (source) => source,
): ReturnType<typeof compileChatTemplate> {
  if (chatTemplate === undefined) {
    throw new UsageError(
      `Cannot render for the model in ${dir}: it has no chat template; put one into ` +
        "chat_template.jinja (base models have none, their instruction-tuned versions do)",
    );
  }
  try {
    return compileChatTemplate(edit(chatTemplate));
  } catch (cause) {
    if (!(cause instanceof UsageError)) throw cause;
    throw new UsageError(
      `Cannot use the chat template in ${dir}, file ${chatTemplateFile}: ${cause.message}`,
      { cause },
    );
  }
}
