import { Template } from "@huggingface/jinja";
import { UsageError } from "../errors.ts";
import type { PyDict, PyValue } from "../python/value.ts";
import { toPlainJson } from "../python/value.ts";
import { TemplateError } from "./template-error.ts";

/** What a chat template renders. */
export interface ChatTemplateInput {
  readonly messages: readonly PyValue[];
  /** `null` where the conversation has none. */
  readonly tools: readonly PyValue[] | null;
  readonly addGenerationPrompt: boolean;
  /** Further variables, such as `bos_token` and `enable_thinking`. */
  readonly variables: PyDict;
  /** What `strftime_now` calls now; the time of the call where it is absent. */
  readonly now?: Date;
}

/** A compiled chat template. Rendering changes neither it nor its input. */
export interface ChatTemplate {
  readonly source: string;
  /** @throws TemplateError where the template refuses the conversation. */
  render(input: ChatTemplateInput): string;
}

/**
 * Compiles a chat template.
 *
 * @throws UsageError naming the line where the template is not valid.
 */
export function compileChatTemplate(source: string): ChatTemplate {
  let template: Template;
  try {
    template = new Template(source);
  } catch (cause) {
    throw new UsageError("Cannot compile the chat template", { cause });
  }
  return {
    source,
    render({ messages, tools, addGenerationPrompt, variables }) {
      try {
        return template.render({
          ...(toPlainJson(variables) as Record<string, unknown>),
          messages: toPlainJson(messages),
          tools: tools && toPlainJson(tools),
          documents: null,
          add_generation_prompt: addGenerationPrompt,
        });
      } catch (cause) {
        throw new TemplateError("TemplateError", String(cause));
      }
    },
  };
}
