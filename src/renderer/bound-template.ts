import type { PyDict, PyValue } from "../python/value.ts";
import type { ChatTemplate } from "../jinja/chat-template.ts";
import { TemplateError } from "../jinja/template-error.ts";
import { copyReasoning } from "./copy-reasoning.ts";
import { copiesReasoning, defaultTransformersVersion } from "./transformers-version.ts";

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
  /** The release of transformers that renders alike. */
  readonly transformers: string;
  /** @throws TemplateError where the template refuses the conversation. */
  render(conversation: TemplateConversation): string;
  /** The same template with further variables, which win, and, where it is given, another clock. */
  with(variables: PyDict, now?: Date): BoundTemplate;
}

/**
 * Fixes a template's variables and clock, and the release of transformers to render as.
 *
 * @throws UsageError where `transformers` is no release.
 */
export function bindTemplate(
  template: ChatTemplate,
  variables: PyDict,
  now: Date,
  transformers = defaultTransformersVersion,
): BoundTemplate {
  const copies = copiesReasoning(transformers);
  return {
    source: template.source,
    variables,
    transformers,
    render({ messages, tools, addGenerationPrompt }) {
      const shown = copies ? copyReasoning(messages) : messages;
      return template.render({ messages: shown, tools, addGenerationPrompt, variables, now });
    },
    with: (further, then = now) =>
      bindTemplate(template, new Map([...variables, ...further]), then, transformers),
  };
}

/** A template as one conversation has it. */
export function bindFor(
  { variables, now }: { readonly variables: PyDict | undefined; readonly now: Date | undefined },
  template: BoundTemplate,
): BoundTemplate {
  if (variables === undefined && now === undefined) return template;
  return template.with(variables ?? new Map(), now);
}

/**
 * What the template renders, or `undefined` where it refuses the conversation.
 *
 * @throws TemplateError where it takes more than it may: it would for any conversation.
 */
export function tryRender(
  template: BoundTemplate,
  conversation: TemplateConversation,
): string | undefined {
  try {
    return template.render(conversation);
  } catch (error) {
    if (error instanceof TemplateError && error.kind !== "LimitError") return undefined;
    throw error;
  }
}
