import { UsageError, describeError } from "../errors.ts";
import type { Message, ToolDefinition } from "../message.ts";
import type { ParserSettings } from "../../packages/tool-parsers/src/choose-parser.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { bindTemplate } from "./bound-template.ts";
import { buildCard, namesOfChoices } from "./capability/build-card.ts";
import type { CapabilityCard } from "./capability/capability-card.ts";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import type { HistoryPolicy } from "./capability/classify-template.ts";
import { classifyTemplate } from "./capability/classify-template.ts";
import { toTemplateMessage, toTemplateTools } from "./openai-messages.ts";
import { renderPrompt, withinLimits } from "./render-prompt.ts";
import { controlShapes } from "./delta/stop-literals.ts";
import { readTextFile } from "../text/decode-text.ts";

/** A chat template without a tokenizer. */
export interface TemplateRenderer {
  /** Measures the template. The card has no ids. */
  card(): CapabilityCard;
  /**
   * Returns the text of a conversation, like `apply_chat_template(tokenize=False)`.
   *
   * @throws UsageError if the template refuses the conversation.
   */
  render(conversation: {
    readonly messages: readonly (Message | PyDict)[];
    readonly tools: readonly ToolDefinition[];
    /** Default true. */
    readonly addGenerationPrompt?: boolean;
    /** Template variables for this conversation only. */
    readonly variables?: PyDict;
    /** The date that the template prints as today in this conversation. */
    readonly now?: Date;
  }): string;
}

/** Options of `createTemplateRenderer()`. */
export interface TemplateRendererOptions {
  readonly templateFile: string;
  /** Template variables, including `bos_token` and others that a tokenizer would provide. */
  readonly variables?: PyDict;
  /** Default `keep`; affects the warnings on the card. */
  readonly historyPolicy?: HistoryPolicy;
  /** Parsers to name on the card; default: those that fit the template. */
  readonly parsers?: ParserSettings;
  /** The date that templates print as today. Default: the time of the call. */
  readonly now?: Date;
  /** The release of transformers to render as, such as `5.20`. Default: the newest known one. */
  readonly transformers?: string;
}

/**
 * Makes a renderer from a template file alone.
 *
 * @throws UsageError if the file cannot be read or is not a valid template.
 */
export async function createTemplateRenderer(
  options: TemplateRendererOptions,
): Promise<TemplateRenderer> {
  const { templateFile, variables = new Map(), historyPolicy = "keep" } = options;
  const source = await readTemplate(templateFile);
  const template = bindTemplate(
    compile(source, templateFile),
    variables,
    options.now ?? new Date(),
    options.transformers,
  );
  const endToken = variables.get("eos_token");
  const known = typeof endToken === "string" && endToken !== "" ? [endToken] : [];
  return {
    card: () =>
      buildCard(
        withinLimits(templateFile, () =>
          classifyTemplate(template, { pattern: controlShapes, known }, historyPolicy),
        ),
        {
          source: templateFile,
          stopIds: [],
          parsers: options.parsers ?? {},
          variables,
          overrides: [
            ...namesOfChoices(options.parsers),
            ...(options.transformers === undefined ? [] : ["transformers"]),
          ],
        },
      ),
    render: ({ messages, tools, addGenerationPrompt = true, variables: further, now }) =>
      renderPrompt(
        further === undefined && now === undefined
          ? template
          : template.with(further ?? new Map(), now),
        {
          messages: messages.map(toTemplateMessage),
          tools: toTemplateTools(tools),
          addGenerationPrompt,
        },
        templateFile,
      ),
  };
}

async function readTemplate(templateFile: string): Promise<string> {
  try {
    return await readTextFile(templateFile);
  } catch (cause) {
    throw new UsageError(`Cannot read the chat template: ${describeError(cause)}`, { cause });
  }
}

function compile(source: string, templateFile: string): ReturnType<typeof compileChatTemplate> {
  try {
    return compileChatTemplate(source);
  } catch (cause) {
    if (!(cause instanceof UsageError)) throw cause;
    throw new UsageError(`Cannot use the chat template ${templateFile}: ${cause.message}`, {
      cause,
    });
  }
}
