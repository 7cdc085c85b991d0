import { UsageError } from "../errors.ts";
import type { BoundTemplate, TemplateConversation } from "./bound-template.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { isPyDict, type PyValue } from "../../packages/python-values/src/value.ts";
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
      `Cannot render the conversation with the chat template of ${source}: ${error.message}` +
        causeOf(template, conversation),
      { cause: error },
    );
  }
}

/** A tool that any template for tools can render. */
const plainTool = parsePythonJson(
  '{"type": "function", "function": {"name": "plain", "description": "Plain", "parameters": {"type": "object", "properties": {}}}}',
);

/**
 * Names the first tool that a template refuses, if it accepts the conversation with another tool. Renders only a few
 * times, because a conversation can be long and have many tools.
 */
function causeOf(template: BoundTemplate, conversation: TemplateConversation): string {
  const { tools } = conversation;
  const accepts = (given: readonly PyValue[]): boolean => {
    try {
      template.render({ ...conversation, tools: given });
      return true;
    } catch (error) {
      if (error instanceof TemplateError) return false;
      throw error;
    }
  };
  if (tools === null || !accepts([plainTool])) return "";
  let acceptedCount = 0;
  let refusedCount = tools.length;
  while (refusedCount - acceptedCount > 1) {
    const middle = (acceptedCount + refusedCount) >> 1;
    if (accepts(tools.slice(0, middle))) acceptedCount = middle;
    else refusedCount = middle;
  }
  const tool = tools[refusedCount - 1];
  if (tool === undefined || accepts([tool])) return "";
  const about = isPyDict(tool) ? tool.get("function") : undefined;
  const name = isPyDict(about) ? about.get("name") : undefined;
  return typeof name === "string" ? `, because of tool ${name}` : "";
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
