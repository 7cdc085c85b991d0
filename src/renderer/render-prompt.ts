import { UsageError } from "../errors.ts";
import type { PyDict, PyValue } from "../python/value.ts";
import type { BoundTemplate } from "./bound-template.ts";
import { TemplateError } from "./template-error.ts";

/**
 * Renders a conversation with the generation prompt.
 *
 * @param source what to call the template in the message.
 * @throws UsageError where the template refuses the conversation.
 */
export function renderPrompt(
  template: BoundTemplate,
  conversation: { readonly messages: readonly PyDict[]; readonly tools: readonly PyValue[] | null },
  source: string,
): string {
  const { messages, tools } = conversation;
  try {
    return template.render({ messages, tools, addGenerationPrompt: true });
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw new UsageError(
      `Cannot render the conversation with the chat template of ${source}: ${error.message}`,
      { cause: error },
    );
  }
}
