import {
  copyValue,
  toPyValue,
  type PlainJson,
  type PyValue,
} from "../../python-values/src/index.ts";
import { compileChatTemplate } from "./chat-template.ts";
import type { TemplateLimits } from "./evaluate/budget.ts";

/**
 * The variables of one rendering, by the names that templates use. Values are plain JSON, or Python values of
 * `@turnwright/python-values`. A number without a fraction is an `int`.
 */
export interface ChatVariables {
  readonly messages: readonly object[];
  /** The tools, usually in OpenAI's shape. Default: `None`, as for a conversation without tools. */
  readonly tools?: readonly object[] | null;
  /** True to end the prompt with the beginning of the assistant's turn. Default false. */
  readonly add_generation_prompt?: boolean;
  /** Any further variable, such as `bos_token`, `documents` or `enable_thinking`. */
  readonly [name: string]: unknown;
}

/** The settings of a chat template. */
export interface ChatTemplateOptions {
  /** Limits of one rendering that differ from the defaults. */
  readonly limits?: Partial<TemplateLimits>;
}

/** A compiled chat template. Rendering changes neither it nor its input. */
export interface PlainChatTemplate {
  readonly source: string;
  /**
   * Renders a conversation.
   *
   * @param now - The time for `strftime_now`, in the machine's time zone. Default: the time of the call.
   * @throws TemplateError if the template refuses the conversation.
   */
  render(variables: ChatVariables, now?: Date): string;
}

/**
 * Compiles a chat template: Jinja with Python's semantics, configured like the transformers library.
 *
 * @throws UsageError naming the line if the template is invalid.
 */
export function createChatTemplate(
  source: string,
  { limits = {} }: ChatTemplateOptions = {},
): PlainChatTemplate {
  const template = compileChatTemplate(source, limits);
  return {
    source,
    render({ messages, tools, add_generation_prompt = false, ...others }, now) {
      return template.render({
        messages: messages.map(convert),
        // The renderer keeps the JSON of a tool, and the caller may change its dictionary later.
        tools: tools?.map((tool) => copyValue(convert(tool))) ?? null,
        addGenerationPrompt: add_generation_prompt,
        variables: new Map(definedOf(others)),
        ...(now !== undefined && { now }),
      });
    },
  };
}

function convert(value: unknown): PyValue {
  return toPyValue(value as PlainJson);
}

function definedOf(others: Readonly<Record<string, unknown>>): [string, PyValue][] {
  const given = Object.entries(others).filter(([, value]) => value !== undefined);
  return given.map(([name, value]) => [name, convert(value)]);
}
