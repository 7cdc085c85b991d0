import type { PyDict, PyValue } from "../python/value.ts";
import type { ChatTemplate } from "../jinja/chat-template.ts";
import { TemplateError } from "../jinja/template-error.ts";

/** What changes from one rendering to the next. */
export interface TemplateConversation {
  readonly messages: readonly PyDict[];
  readonly tools: readonly PyValue[] | null;
  readonly addGenerationPrompt: boolean;
}

/** A chat template together with what stays the same over a run: its variables and its clock. */
export interface BoundTemplate {
  readonly source: string;
  readonly variables: PyDict;
  /** @throws TemplateError where the template refuses the conversation. */
  render(conversation: TemplateConversation): string;
  /** The same template with further variables, which win, and, where it is given, another clock. */
  with(variables: PyDict, now?: Date): BoundTemplate;
}

/** Fixes a template's variables and clock. */
export function bindTemplate(template: ChatTemplate, variables: PyDict, now: Date): BoundTemplate {
  return {
    source: template.source,
    variables,
    render: (conversation) => template.render({ ...conversation, variables, now }),
    with: (further, then = now) =>
      bindTemplate(template, new Map([...variables, ...further]), then),
  };
}

/** What the template renders, or `undefined` where it refuses the conversation. */
export function tryRender(
  template: BoundTemplate,
  conversation: TemplateConversation,
): string | undefined {
  try {
    return template.render(conversation);
  } catch (error) {
    if (error instanceof TemplateError) return undefined;
    throw error;
  }
}
