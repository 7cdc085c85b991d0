import { UsageError } from "../errors.ts";
import type { BoundTemplate, TemplateConversation } from "./bound-template.ts";
import { TemplateError } from "../../packages/chat-template/src/template-error.ts";

/** A chat template refuses a conversation, as with `raise_exception()`; it may accept another one. */
export class ConversationRefusal extends UsageError {}

/** A chat template prints a conversation without one of its tools. It may print another conversation's tools. */
export class HiddenTool extends UsageError {
  /** The tool's name. */
  readonly tool: string;

  constructor(tool: string, message: string) {
    super(message);
    this.tool = tool;
  }
}

/**
 * Renders a conversation of the user.
 *
 * @param source - The template's name in messages.
 * @throws ConversationRefusal if the template refuses the conversation.
 */
export function renderPrompt(
  template: BoundTemplate,
  conversation: TemplateConversation,
  source: string,
): string {
  try {
    return template.render(conversation);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw new ConversationRefusal(
      `Cannot render the conversation with the chat template of ${source}: ${error.message}`,
      { cause: error },
    );
  }
}

/**
 * Measures a template.
 *
 * @throws UsageError if the template exceeds the limits of one rendering.
 */
export function withinLimits<Result>(source: string, measure: () => Result): Result {
  try {
    return measure();
  } catch (cause) {
    if (!(cause instanceof TemplateError)) throw cause;
    throw new UsageError(`Cannot use the chat template of ${source}: ${cause.message}`, { cause });
  }
}
