import { UsageError, describeError } from "../errors.ts";
import type { Message, ToolDefinition } from "../message.ts";
import type { ParserSettings } from "../parser/choose-parser.ts";
import type { PyDict } from "../python/value.ts";
import { bindTemplate } from "./bound-template.ts";
import { buildCard, namesOfChoices } from "./capability/build-card.ts";
import type { CapabilityCard } from "./capability/capability-card.ts";
import { compileChatTemplate } from "../jinja/chat-template.ts";
import type { HistoryPolicy } from "./capability/classify-template.ts";
import { classifyTemplate } from "./capability/classify-template.ts";
import { toTemplateMessage, toTemplateTools } from "./openai-messages.ts";
import { renderPrompt, withinLimits } from "./render-prompt.ts";
import { controlShapes } from "./delta/stop-literals.ts";
import { readTextFile } from "../text/decode-text.ts";

/** A chat template without a tokenizer. */
export interface TemplateRenderer {
  /** Measures the template; the card carries no ids. */
  card(): CapabilityCard;
  /**
   * The text of a conversation, as `apply_chat_template(tokenize=False)` gives it.
   *
   * @throws UsageError where the template refuses the conversation.
   */
  render(conversation: {
    readonly messages: readonly (Message | PyDict)[];
    readonly tools: readonly ToolDefinition[];
    /** Default true. */
    readonly addGenerationPrompt?: boolean;
    /** Template variables for this conversation only. */
    readonly variables?: PyDict;
    /** What the template takes for today in this conversation. */
    readonly now?: Date;
  }): string;
}

/** How a renderer without a tokenizer is made. */
export interface TemplateRendererOptions {
  readonly templateFile: string;
  /** Template variables, `bos_token` and such among them, which no tokenizer gives here. */
  readonly variables?: PyDict;
  /** Default `keep`; decides which warnings the card carries. */
  readonly historyPolicy?: HistoryPolicy;
  /** Parsers to name on the card, in the place of those that fit the template where they are named. */
  readonly parsers?: ParserSettings;
  /** What templates that print the date take for today. Default the time of the call. */
  readonly now?: Date;
  /** The release of transformers to render as, such as `5.20`. Default the newest known. */
  readonly transformers?: string;
}

/**
 * Makes a renderer of a template file alone.
 *
 * @throws UsageError where the file cannot be read or is no valid template.
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
